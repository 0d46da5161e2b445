/* injector KIND COUNT CPU OTHER FOLDER none|fair|real-time: prints the disturbed thread on its first line, begins
 * when it reads a line on its standard input, logs each fault as a JSON line, and ends when that input ends. */
#include "injector.h"

static const struct { const char *name; void (*inject)(void); } kinds[] = {
    { "fifo-futex", fifo_futex },           { "impostor", impostor },
    { "renamed", renamed },                 { "two-culprits", two_culprits },
    { "nested-call", nested_call },         { "own-packets", own_packets },
    { "long-call", long_call },             { "self-moved", self_moved },
    { "moved-waker", moved_waker },         { "exec-child", exec_child },
    { "namespace-child", namespace_child }, { "teardown", teardown },
    { "sqpoll", sqpoll },                   { "real-itimer", real_itimer },
    { "posix-timer", posix_timer },         { "timer-descriptor", timer_descriptor },
    { "moved-sleeper", moved_sleeper },     { "perf-sampling", perf_sampling },
    { "perf-read", perf_read },             { "cpuid-read", cpuid_read },
    { "code-patch", code_patch },           { "lru-drain", lru_drain },
    { "quota", quota },                     { "nested-quota", nested_quota },
    { "frozen", frozen },                   { "stopped", stopped },
    { "unmap", unmap },                     { "barrier", barrier },
    { "signalled", signalled },             { "moved-victim", moved_victim },
    { "throttled", throttled },
};

int main(int count, char **args)
{
    if (count == 3 && !strcmp(args[1], "child"))
        burn_as_child(strtoull(args[2], NULL, 10));
    set.kind = count > 1 ? args[1] : "injector";
    errno = EINVAL;
    must(count == 7, "arguments");
    set = (struct setting){ .kind = args[1], .count = atoi(args[2]), .cpu = atoi(args[3]), .other = atoi(args[4]),
                            .folder = args[5] };
    char self[512] = "";
    must(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "/proc/self/exe");
    set.self = self;
    pin(0, set.other);
    if (strcmp(args[6], "none"))
        start_victim(!strcmp(args[6], "real-time"));
    printf("{\"victim\":%d}\n", set.victim);
    fflush(stdout);
    char line[64];
    if (!fgets(line, sizeof line, stdin))
        return 1;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].name, set.kind)) {
            /* Its times must be its own choice, not those at which a busy machine lets it run. */
            fifo(0, 70);
            kinds[i].inject();
            puts("{\"done\":true}");
            fflush(stdout);
            while (fgets(line, sizeof line, stdin))
                ;
            if (set.victim)
                kill(set.victim, SIGKILL);
            return 0;
        }
    errno = ENOENT;
    die("no such kind");
}
