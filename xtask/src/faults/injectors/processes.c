/* Processes, and a kernel thread, that take the measured CPU. */
#include "injector.h"
#include <linux/io_uring.h>

void burn_as_child(uint64_t ns)
{
    struct ran ran = burn(ns);
    must(write(3, &ran, sizeof ran) == sizeof ran, "the pipe to the parent");
    _exit(0);
}

static uint64_t used_ns(const struct rusage *used)
{
    return (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000 * MS
        + (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) * US;
}

/* Forks, and executes a copy of this program under another name on the measured CPU. Returns its total run time, ns. */
static uint64_t exec_burner(const char *name, int namespaced, struct ran *ran)
{
    char path[512], length[32];
    snprintf(path, sizeof path, "%s/%s", set.folder, name);
    snprintf(length, sizeof length, "%llu", (unsigned long long)(1500 * US + random_below(2500 * US)));
    unlink(path);
    must(!link(set.self, path), path);
    int ends[2];
    must(!pipe(ends), "pipe");
    pid_t pid = namespaced ? (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0) : fork();
    must(pid >= 0, "fork");
    if (!pid) {
        dup2(ends[1], 3);
        pin(0, set.cpu);
        fifo(0, 15);
        execl(path, path, "child", length, NULL);
        _exit(1);
    }
    close(ends[1]);
    must(read(ends[0], ran, sizeof *ran) == sizeof *ran, "the child's report");
    close(ends[0]);
    struct rusage used;
    must(wait4(pid, NULL, 0, &used) == pid, "wait4");
    unlink(path);
    ran->who.tid = pid;
    return used_ns(&used);
}

static void children(int namespaced)
{
    for (int i = 0; i < set.count; i++) {
        char name[16];
        pause_between();
        do
            random_name(name);
        while (strpbrk(name, "/ "));
        struct ran ran;
        uint64_t all = exec_burner(name, namespaced, &ran);
        log_fault(ran.begin, ran.end);
        log_ran(&ran);
        /* Including the start and end of the program, which are also its own time under its own name. */
        field_number("charged", all);
        logged();
    }
}

/* A child that executes a program with a random name. */
void exec_child(void) { children(0); }

/* The same in its own PID namespace, where it has id 1. */
void namespace_child(void) { children(1); }

uint64_t ran_ns(pid_t pid)
{
    char path[64];
    unsigned long long ns = 0;
    snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    FILE *file = fopen(path, "r");
    must(file && fscanf(file, "%llu", &ns) == 1, path);
    fclose(file);
    return ns;
}

/* A process with much memory that is killed: the kernel frees the memory in the process's own time. */
void teardown(void)
{
    for (int i = 0; i < set.count; i++) {
        size_t bytes = (32 + random_below(32)) << 20;
        char name[16];
        random_name(name);
        pid_t pid = fork();
        must(pid >= 0, "fork");
        if (!pid) {
            take_name(name);
            char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            madvise(memory, bytes, MADV_NOHUGEPAGE);
            memset(memory, 1, bytes);
            pin(0, set.cpu);
            fifo(0, 12);
            pause();
            _exit(0);
        }
        pause_ns(150 * MS);
        pause_between();
        uint64_t before = ran_ns(pid), begin = now();
        struct rusage used;
        kill(pid, SIGKILL);
        must(wait4(pid, NULL, 0, &used) == pid, "wait4");
        uint64_t end = now();
        uint64_t all = used_ns(&used);
        struct who who = { .tid = pid };
        strcpy(who.name, name);
        log_fault(begin, end);
        field_who("", &who);
        field_number("charged", all > before ? all - before : 0);
        log_waker();
        logged();
    }
}

/* The kernel thread that polls an io_uring, bound to the measured CPU: it polls for 2 ms and then sleeps. */
void sqpoll(void)
{
    struct io_uring_params p = { .flags = IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF,
                                 .sq_thread_cpu = (uint32_t)set.cpu, .sq_thread_idle = 2 };
    int ring = (int)syscall(SYS_io_uring_setup, 4, &p);
    must(ring >= 0, "io_uring_setup");
    char *sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    char *entries = mmap(NULL, p.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
                         IORING_OFF_SQES);
    must(sq != MAP_FAILED && entries != MAP_FAILED, "mmap of the ring");
    struct who poller = { .tid = 0 };
    snprintf(poller.name, sizeof poller.name, "iou-sqp-%d", getpid());
    /* It sets its name when it first runs. */
    pause_ns(100 * MS);
    for (int tid = getpid(); tid < getpid() + 200 && !poller.tid; tid++) {
        char path[64], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && !strncmp(name, "iou-sqp-", 8))
            poller.tid = tid;
        if (file)
            fclose(file);
    }
    must(poller.tid, "the polling thread");
    fifo(poller.tid, 10);
    _Atomic uint32_t *flags = (void *)(sq + p.sq_off.flags), *tail = (void *)(sq + p.sq_off.tail);
    uint32_t *array = (void *)(sq + p.sq_off.array), mask = *(uint32_t *)(sq + p.sq_off.ring_mask);
    for (int i = 0; i < set.count; i++) {
        pause_between();
        while (!(atomic_load(flags) & IORING_SQ_NEED_WAKEUP))
            pause_ns(MS);
        uint32_t at = atomic_load(tail), slot = at & mask;
        memset(entries + slot * sizeof(struct io_uring_sqe), 0, sizeof(struct io_uring_sqe));
        array[slot] = slot;
        atomic_store(tail, at + 1);
        uint64_t before = ran_ns(poller.tid), begin = now();
        must(syscall(SYS_io_uring_enter, ring, 1, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0) >= 0, "io_uring_enter");
        /* It clears the flag when it gets the CPU, and sets it again before it sleeps. */
        for (int waited = 0; waited < 500 && atomic_load(flags) & IORING_SQ_NEED_WAKEUP; waited++)
            pause_ns(100 * US);
        while (!(atomic_load(flags) & IORING_SQ_NEED_WAKEUP))
            pause_ns(200 * US);
        uint64_t end = now();
        pause_ns(5 * MS);
        log_fault(begin, end);
        field_who("", &poller);
        field_number("charged", ran_ns(poller.tid) - before);
        log_waker();
        logged();
        /* The completion ring holds eight: read them. */
        atomic_store((_Atomic uint32_t *)(sq + p.cq_off.head), atomic_load((_Atomic uint32_t *)(sq + p.cq_off.tail)));
    }
}
