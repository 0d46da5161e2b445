/* Faults of a thread that jitterscope follows or watches from outside. */
#include "injector.h"
#include <linux/futex.h>
#include <linux/membarrier.h>

/* Shared by the two processes: the job of the victim's second thread, and the victim's own measurement. */
struct shared {
    _Atomic uint32_t asked, done;
    _Atomic int what;
    struct ran ran;
    _Atomic uint64_t gaps;
    struct { uint64_t begin, end; } gap[65536];
};
static struct shared *shared;
enum { UNMAP, BARRIER };

/* Shorter gaps do not matter to the kinds that read them. */
#define GAP (1 * MS)

static void nothing(int signal) { (void)signal; }

static void fair(int tid)
{
    struct sched_param none = { 0 };
    must(!sched_setscheduler(tid, SCHED_OTHER, &none), "sched_setscheduler");
}

/* Gives the victim its CPU despite other load, because a waiting victim cannot be disturbed. Not for long, or it is
 * throttled. */
static void give_cpu(void)
{
    pause_between();
    fifo(set.victim, 1);
    pause_ns(500 * US);
}

/* The victim's second thread, on the other CPU. */
static void *beside(void *arg)
{
    char name[16];
    pin(0, set.other);
    random_name(name);
    take_name(name);
    for (uint32_t turn = 0;; turn++) {
        while (atomic_load(&shared->asked) == turn)
            syscall(SYS_futex, &shared->asked, FUTEX_WAIT, turn, NULL, NULL, 0);
        struct ran ran = { .who = myself() };
        /* Not permanently: a group with a quota may not contain real-time threads. */
        fifo(0, 70);
        if (atomic_load(&shared->what) == UNMAP) {
            char *pages = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(pages, 1, 16 * 4096);
            ran.begin = now();
            munmap(pages, 16 * 4096);
        } else {
            ran.begin = now();
            syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
        }
        ran.end = now();
        fair(0);
        shared->ran = ran;
        atomic_fetch_add(&shared->done, 1);
    }
    return arg;
}

void start_victim(int real_time)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED, "mmap");
    memset(shared, 0, sizeof *shared);
    pid_t parent = getpid();
    char name[16];
    random_name(name);
    set.victim = fork();
    must(set.victim >= 0, "fork");
    if (set.victim)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    take_name(name);
    signal(SIGUSR1, nothing);
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
    pthread_t thread;
    must(!pthread_create(&thread, NULL, beside, NULL), "pthread_create");
    pin(0, set.cpu);
    if (real_time)
        fifo(0, 1);
    for (uint64_t last = now();;) {
        uint64_t t = now();
        if (t - last >= GAP) {
            uint64_t at = atomic_load(&shared->gaps) % 65536;
            shared->gap[at].begin = last;
            shared->gap[at].end = t;
            atomic_fetch_add(&shared->gaps, 1);
        }
        last = t;
    }
}

static void let_beside(int what)
{
    give_cpu();
    atomic_store(&shared->what, what);
    uint32_t next = atomic_fetch_add(&shared->asked, 1) + 1;
    syscall(SYS_futex, &shared->asked, FUTEX_WAKE, 1, NULL, NULL, 0);
    while (atomic_load(&shared->done) != next)
        pause_ns(MS);
    fair(set.victim);
    log_fault(shared->ran.begin, shared->ran.end);
    field_who("sender_", &shared->ran.who);
    logged();
}

/* The victim's process unmaps memory on another CPU, so this CPU must flush the addresses. */
void unmap(void)
{
    for (int i = 0; i < set.count; i++)
        let_beside(UNMAP);
}

/* The victim's process pretends that it has just written code. */
void barrier(void)
{
    for (int i = 0; i < set.count; i++)
        let_beside(BARRIER);
}

/* A signal with an empty handler: it interrupts the victim's CPU. */
void signalled(void)
{
    for (int i = 0; i < set.count; i++) {
        give_cpu();
        uint64_t begin = now();
        must(!kill(set.victim, SIGUSR1), "kill");
        log_fault(begin, now() + 20 * US);
        pause_ns(MS);
        fair(set.victim);
        log_waker();
        logged();
    }
}

/* SIGSTOP and SIGCONT. */
void stopped(void)
{
    for (int i = 0; i < set.count; i++) {
        give_cpu();
        uint64_t begin = now();
        must(!kill(set.victim, SIGSTOP), "kill");
        pause_ns(2 * MS + random_below(6 * MS));
        uint64_t end = now();
        must(!kill(set.victim, SIGCONT), "kill");
        pause_ns(MS);
        fair(set.victim);
        log_fault(begin, end);
        log_waker();
        logged();
    }
}

static void put(const char *group, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", group, file);
    int to = open(path, O_WRONLY);
    must(to >= 0 && write(to, text, strlen(text)) == (ssize_t)strlen(text), path);
    close(to);
}

/* A control group that contains only the victim: version 1 if that controller is mounted, or else version 2. */
static int group_of(const char *controller, char *group, char *parent)
{
    int version = 1;
    snprintf(parent, 256, "/sys/fs/cgroup/%s", controller);
    if (access(parent, F_OK)) {
        version = 2;
        strcpy(parent, "/sys/fs/cgroup");
        if (!strcmp(controller, "cpu"))
            put(parent, "cgroup.subtree_control", "+cpu");
    }
    snprintf(group, 256, "%.200s/faults-%d", parent, getpid());
    must(!mkdir(group, 0755), group);
    char pid[16];
    snprintf(pid, sizeof pid, "%d", set.victim);
    put(group, "cgroup.procs", pid);
    return version;
}

static void leave_group(const char *group, const char *parent)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%d", set.victim);
    put(parent, "cgroup.procs", pid);
    for (int i = 0; rmdir(group) && i < 100; i++)
        pause_ns(10 * MS);
}

/* A frozen control group. */
void frozen(void)
{
    char group[256], parent[256];
    int version = group_of("freezer", group, parent);
    const char *file = version == 1 ? "freezer.state" : "cgroup.freeze";
    for (int i = 0; i < set.count; i++) {
        give_cpu();
        uint64_t begin = now();
        put(group, file, version == 1 ? "FROZEN" : "1");
        pause_ns(2 * MS + random_below(6 * MS));
        uint64_t end = now();
        put(group, file, version == 1 ? "THAWED" : "0");
        pause_ns(MS);
        fair(set.victim);
        log_fault(begin, end);
        logged();
    }
    leave_group(group, parent);
}

/* How long the kernel has throttled this group so far, ns. */
static uint64_t throttled_ns(const char *group, int version)
{
    char path[512], line[128];
    unsigned long long value = 0;
    snprintf(path, sizeof path, "%s/cpu.stat", group);
    FILE *file = fopen(path, "r");
    must(!!file, path);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, version == 1 ? "throttled_time %llu" : "throttled_usec %llu", &value) == 1)
            break;
    fclose(file);
    return version == 1 ? value : value * US;
}

/* A quota of 8 ms in 32 ms for about 80 ms; the length is the kernel's own count of throttled time. */
void quota(void)
{
    char group[256], parent[256];
    int version = group_of("cpu", group, parent);
    const char *file = version == 1 ? "cpu.cfs_quota_us" : "cpu.max";
    if (version == 1)
        put(group, "cpu.cfs_period_us", "32000");
    struct who name = { 0 };
    snprintf(name.name, sizeof name.name, "%s", strrchr(group, '/') + 1);
    for (int n = 0, tries = 0; n < set.count && tries < 4 * set.count; tries++) {
        pause_between();
        uint64_t before = throttled_ns(group, version), begin = now();
        put(group, file, version == 1 ? "8000" : "8000 32000");
        pause_ns(80 * MS);
        put(group, file, version == 1 ? "-1" : "max 32000");
        pause_ns(40 * MS);
        uint64_t held = throttled_ns(group, version) - before;
        /* If other threads took the CPU meanwhile, it may not have used up its quota. */
        if (held < 10 * MS)
            continue;
        log_fault(begin, now());
        field_who("group_", &name);
        field_number("held", held);
        logged();
        n++;
    }
    leave_group(group, parent);
}

/* Limits a group to this time in each period, us. It must be without a limit: version 1 checks each of the two writes. */
static void limit(const char *group, int version, unsigned quota, unsigned period)
{
    char text[32];
    if (version == 1) {
        snprintf(text, sizeof text, "%u", period);
        put(group, "cpu.cfs_period_us", text);
        snprintf(text, sizeof text, "%u", quota);
        put(group, "cpu.cfs_quota_us", text);
    } else {
        snprintf(text, sizeof text, "%u %u", quota, period);
        put(group, "cpu.max", text);
    }
}

static void lift(const char *group, int version)
{
    if (version == 1)
        put(group, "cpu.cfs_quota_us", "-1");
    else
        put(group, "cpu.max", "max");
}

static void field_group(const char *prefix, const char *group)
{
    struct who name = { 0 };
    snprintf(name.name, sizeof name.name, "%s", strrchr(group, '/') + 1);
    field_who(prefix, &name);
}

/* Two groups, one within the other, each with a quota for about 80 ms. By turns, one uses up its quota in each period of
 * 32 ms, and the other never does: the inner one, because it has as large a share but six times the period, in which
 * the outer one lets it run no longer; the outer one, because it has a larger quota. The first period can be longer, if
 * the last fault's is still running. The length is the kernel's own count of the group that throttled, and a fault in
 * which the other group's count rose is not logged. */
void nested_quota(void)
{
    char outer[256], inner[300], parent[256], pid[16];
    int version = group_of("cpu", outer, parent);
    snprintf(inner, sizeof inner, "%s/within-%d", outer, getpid());
    must(!mkdir(inner, 0755), inner);
    snprintf(pid, sizeof pid, "%d", set.victim);
    put(inner, "cgroup.procs", pid);
    if (version == 2)
        put(outer, "cgroup.subtree_control", "+cpu");
    for (int n = 0, tries = 0; n < set.count && tries < 4 * set.count; tries++) {
        /* On a busy CPU: the same wait of the victim must not contain two faults, of which one may not be logged. */
        uint64_t ran = ran_ns(set.victim);
        while (ran_ns(set.victim) < ran + MS)
            pause_ns(MS);
        const char *tight = n % 2 ? inner : outer, *wide = n % 2 ? outer : inner;
        unsigned quota = 5000 + (unsigned)random_below(5000), larger = 16000 + (unsigned)random_below(48000);
        pause_between();
        uint64_t tight_before = throttled_ns(tight, version), wide_before = throttled_ns(wide, version), begin = now();
        limit(tight, version, quota, 32000);
        /* Version 1 refuses an inner group a larger share than its parent's. */
        if (wide == inner)
            limit(wide, version, 6 * quota, 6 * 32000);
        else
            limit(wide, version, larger, 32000);
        pause_ns(80 * MS);
        lift(wide, version);
        lift(tight, version);
        pause_ns(40 * MS);
        uint64_t held = throttled_ns(tight, version) - tight_before, other = throttled_ns(wide, version) - wide_before;
        /* If other threads took the CPU meanwhile, it may not have used up its quota. */
        if (held < 10 * MS || other)
            continue;
        log_fault(begin, now());
        field_group("group_", tight);
        field_number("held", held);
        field_group("other_", wide);
        logged();
        n++;
    }
    leave_group(inner, parent);
    leave_group(outer, parent);
}

static void *competes(void *arg)
{
    fair(0);
    pin(0, set.cpu);
    for (;;)
        burn(MS);
    return arg;
}

/* A real-time victim that never sleeps, and a thread of the fair class: the kernel reserves a share for the latter. */
void throttled(void)
{
    pthread_t thread;
    uint64_t from = atomic_load(&shared->gaps);
    must(!pthread_create(&thread, NULL, competes, NULL), "pthread_create");
    for (int n = 0; n < set.count;) {
        pause_ns(500 * MS);
        for (; from < atomic_load(&shared->gaps) && n < set.count; from++) {
            uint64_t begin = shared->gap[from % 65536].begin, end = shared->gap[from % 65536].end;
            if (end - begin < 20 * MS)
                continue;
            log_fault(begin, end);
            logged();
            n++;
        }
    }
}

static void burns(struct waiter *w) { w->ran = burn(w->length); }

/* The victim is moved to another CPU and waits there behind a thread. */
void moved_victim(void)
{
    static struct waiter w = { .priority = 50, .elsewhere = 1, .work = burns };
    random_name(w.name);
    start_waiter(&w);
    fifo(0, 80);
    for (int i = 0; i < set.count; i++) {
        pause_between();
        w.length = 2 * MS + random_below(2 * MS);
        ask(&w);
        pin(set.victim, set.other);
        await(&w);
        pause_ns(4 * MS);
        pin(set.victim, set.cpu);
        log_fault(w.ran.begin, w.ran.end);
        log_ran(&w.ran);
        logged();
    }
}
