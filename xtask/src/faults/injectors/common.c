/* Clocks, placing, names, and the log. */
#include "injector.h"
#include <linux/futex.h>

struct setting set;

void die(const char *what)
{
    fprintf(stderr, "%s: %s: %s\n", set.kind, what, strerror(errno));
    exit(1);
}

void must(int ok, const char *what)
{
    if (!ok)
        die(what);
}

uint64_t now_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

uint64_t now(void) { return now_of(CLOCK_MONOTONIC_RAW); }

void pause_ns(uint64_t ns)
{
    struct timespec t = { (time_t)(ns / 1000000000ull), (long)(ns % 1000000000ull) };
    while (nanosleep(&t, &t) && errno == EINTR)
        ;
}

uint64_t random_below(uint64_t limit)
{
    static uint64_t state;
    if (!state)
        state = now() * 0x9e3779b97f4a7c15ull | 1;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % limit;
}

void pause_between(void) { pause_ns(20 * MS + random_below(40 * MS)); }

void pin(int tid, int cpu)
{
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    must(!sched_setaffinity(tid, sizeof cpus, &cpus), "sched_setaffinity");
}

void fifo(int tid, int priority)
{
    struct sched_param p = { .sched_priority = priority };
    must(!sched_setscheduler(tid, SCHED_FIFO, &p), "sched_setscheduler");
}

void random_name(char name[16])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789 :/-_.[](){}#%=+~@";
    size_t length = 3 + random_below(13);
    for (size_t i = 0; i < length; i++)
        name[i] = letters[random_below(i && i + 1 < length ? sizeof letters - 1 : 36)];
    name[length] = 0;
}

void take_name(const char *name) { prctl(PR_SET_NAME, name); }

struct who myself(void)
{
    struct who who = { .tid = (int)syscall(SYS_gettid) };
    prctl(PR_GET_NAME, who.name);
    return who;
}

struct ran burn(uint64_t ns)
{
    struct ran ran = { .who = myself(), .begin = now() };
    uint64_t last = ran.begin;
    while (last - ran.begin < ns) {
        uint64_t t = now();
        if (t - last < 2 * US)
            ran.busy += t - last;
        last = t;
    }
    ran.end = last;
    return ran;
}

static char line[4096];
static size_t used;

static void add(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    used += (size_t)vsnprintf(line + used, sizeof line - used, format, args);
    va_end(args);
    must(used < sizeof line, "the log's line");
}

void log_fault(uint64_t begin, uint64_t end)
{
    used = 0;
    add("{\"begin\":%llu,\"end\":%llu", (unsigned long long)begin, (unsigned long long)end);
}

void field_number(const char *key, uint64_t value) { add(",\"%s\":%llu", key, (unsigned long long)value); }

void field_who(const char *prefix, const struct who *who)
{
    add(",\"%stid\":%d,\"%sname\":\"", prefix, who->tid, prefix);
    /* Our names contain no quote and no backslash. */
    add("%s\"", who->name);
}

void logged(void)
{
    puts(strcat(line, "}"));
    fflush(stdout);
}

static void wait_while(_Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load(word) == value)
        syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void raise_word(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void *wait_and_work(void *arg)
{
    struct waiter *w = arg;
    pin(0, w->elsewhere ? set.other : set.cpu);
    fifo(0, w->priority);
    if (!w->keeps_name)
        take_name(w->name);
    raise_word(&w->done);
    for (uint32_t turn = 0;; turn++) {
        wait_while(&w->asked, turn);
        w->work(w);
        raise_word(&w->done);
    }
    return NULL;
}

void start_waiter(struct waiter *w)
{
    must(!pthread_create(&w->thread, NULL, wait_and_work, w), "pthread_create");
    while (!atomic_load(&w->done))
        pause_ns(MS);
    pause_ns(20 * MS);
}

void ask(struct waiter *w) { raise_word(&w->asked); }

void await(struct waiter *w)
{
    uint32_t asked = atomic_load(&w->asked);
    while (atomic_load(&w->done) != asked + 1)
        pause_ns(200 * US);
}
