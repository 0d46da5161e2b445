/* Which functions of a program are entered: loaded into it with LD_PRELOAD.
 *
 * Each function begins with a breakpoint, which is taken out when it is first hit, so that the program is slow
 * for the first call of a function alone.
 *
 * ENTERED_PROGRAM  the program; what it starts is left alone
 * ENTERED_SYMBOLS  addresses of its functions, one a line, hexadecimal, as they are linked
 * ENTERED_OUT      where those that were entered are written, with the number of the process behind it
 */
#define _GNU_SOURCE
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { UNKNOWN, WAITED_FOR, ENTERED };
static const unsigned char BREAKPOINT = 0xcc;

static unsigned long begin, end, loaded_at;
static unsigned char *code, *state;

static void hit(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    unsigned long at = (unsigned long)registers[REG_RIP] - 1;
    if (at < begin || at >= end || state[at - begin] == UNKNOWN)
        abort();
    state[at - begin] = ENTERED;
    *(volatile unsigned char *)at = code[at - begin];
    registers[REG_RIP] = (greg_t)at;
}

/* Finds the program's text; whether this is the program at all. */
static int find_text(void) {
    char program[PATH_MAX] = "", line[PATH_MAX + 128];
    const char *wanted = getenv("ENTERED_PROGRAM");
    if (!wanted || readlink("/proc/self/exe", program, sizeof program - 1) < 0 || strcmp(program, wanted))
        return 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        char rights[8];
        if (!strstr(line, program) || sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3)
            continue;
        if (!loaded_at)
            loaded_at = from;
        if (rights[2] == 'x')
            begin = from, end = to;
    }
    if (maps)
        fclose(maps);
    return begin != 0;
}

__attribute__((constructor)) static void prepare(void) {
    char line[64];
    if (!find_text())
        return;
    size_t size = end - begin;
    int memory = MAP_PRIVATE | MAP_ANONYMOUS;
    code = mmap(NULL, size, PROT_READ | PROT_WRITE, memory, -1, 0);
    state = mmap(NULL, size, PROT_READ | PROT_WRITE, memory, -1, 0);
    FILE *symbols = fopen(getenv("ENTERED_SYMBOLS"), "r");
    int open = mprotect((void *)begin, size, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
    if (code == MAP_FAILED || state == MAP_FAILED || !symbols || !open)
        abort();
    memcpy(code, (void *)begin, size);
    struct sigaction action = { .sa_sigaction = hit, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
    sigaction(SIGTRAP, &action, NULL);
    while (fgets(line, sizeof line, symbols)) {
        unsigned long at = strtoul(line, NULL, 16) + loaded_at;
        if (at >= begin && at < end) {
            state[at - begin] = WAITED_FOR;
            *(unsigned char *)at = BREAKPOINT;
        }
    }
    fclose(symbols);
}

__attribute__((destructor)) static void report(void) {
    char path[PATH_MAX];
    if (!begin)
        return;
    snprintf(path, sizeof path, "%s.%d", getenv("ENTERED_OUT"), getpid());
    FILE *out = fopen(path, "w");
    for (unsigned long at = 0; out && at < end - begin; at++)
        if (state[at] == ENTERED)
            fprintf(out, "%lx\n", begin - loaded_at + at);
    if (out)
        fclose(out);
}
