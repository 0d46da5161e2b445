/* Threads and processes that take the measured CPU. */
#include "injector.h"
#include <arpa/inet.h>
#include <sys/socket.h>

static void burns(struct waiter *w) { w->ran = burn(w->length); }

void log_ran(const struct ran *ran)
{
    field_who("", &ran->who);
    field_number("busy", ran->busy);
}

void log_waker(void)
{
    struct who me = myself();
    field_who("sender_", &me);
}

/* One fault by a new thread with this name, woken through a futex. */
static void woken(const char *name)
{
    static struct waiter many[256];
    static size_t next;
    struct waiter *w = &many[next++ % 256];
    *w = (struct waiter){ .priority = 5 + (int)random_below(80), .work = burns };
    snprintf(w->name, sizeof w->name, "%s", name);
    start_waiter(w);
    pause_between();
    /* Longer than the sleep of a probe that wakes every millisecond. */
    w->length = 1500 * US + random_below(2500 * US);
    ask(w);
    await(w);
    log_fault(w->ran.begin, w->ran.end);
    log_ran(&w->ran);
    log_waker();
    logged();
}

/* A SCHED_FIFO thread with a random name, woken by a thread with a different name each time. */
void fifo_futex(void)
{
    for (int i = 0; i < set.count; i++) {
        char name[16];
        random_name(name);
        take_name(name);
        random_name(name);
        woken(name);
    }
}

/* The same with names of kernel threads, of jitterscope's threads, and of its own terms. */
void impostor(void)
{
    static const char *names[] = { "kworker/1:2", "ksoftirqd/1", "migration/1",     "swapper/1", "js-spin/1",
                                   "rcu_preempt", "irq/36-virt", "kworker/u8:3-ev", "0",         "cpuhp/1",
                                   "unresolved",  "tick_nohz_handl" };
    for (int i = 0; i < set.count; i++)
        woken(names[(size_t)i % (sizeof names / sizeof *names)]);
}

static void burns_renaming(struct waiter *w)
{
    char name[16];
    random_name(name);
    take_name(name);
    w->ran = burn(w->length);
    random_name(name);
    take_name(name);
    w->second = burn(400 * US + w->length / 2);
}

/* One turn under two names. */
void renamed(void)
{
    struct waiter w = { .priority = 30, .work = burns_renaming, .keeps_name = 1 };
    start_waiter(&w);
    for (int i = 0; i < set.count; i++) {
        pause_between();
        w.length = 500 * US + random_below(2000 * US);
        ask(&w);
        await(&w);
        /* The first name is set within the turn; before that, it has the previous turn's name. */
        log_fault(w.ran.begin, w.second.end);
        log_ran(&w.ran);
        field_who("second_", &w.second.who);
        field_number("second_busy", w.second.busy);
        logged();
    }
}

/* Two threads woken together: the higher priority runs first, and the victim waits for both. */
void two_culprits(void)
{
    static struct waiter a = { .priority = 60, .work = burns }, b = { .priority = 50, .work = burns };
    random_name(a.name);
    random_name(b.name);
    start_waiter(&a);
    start_waiter(&b);
    for (int i = 0; i < set.count; i++) {
        pause_between();
        a.length = 1500 * US + random_below(1500 * US);
        b.length = 500 * US + random_below(4000 * US);
        ask(&a);
        ask(&b);
        await(&a);
        await(&b);
        log_fault(a.ran.begin, b.ran.end);
        log_ran(&a.ran);
        field_who("second_", &b.ran.who);
        field_number("second_busy", b.ran.busy);
        logged();
    }
}

int cpuid_file(void)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/cpu/%d/cpuid", set.cpu);
    int file = open(path, O_RDONLY);
    must(file >= 0, path);
    return file;
}

/* Another CPU calls a function here while a thread runs: an interrupt inside a thread. */
void nested_call(void)
{
    struct waiter w = { .priority = 40, .work = burns };
    random_name(w.name);
    start_waiter(&w);
    int file = cpuid_file();
    char leaf[16];
    for (int i = 0; i < set.count; i++) {
        pause_between();
        w.length = 3 * MS + random_below(2 * MS);
        ask(&w);
        pause_ns(300 * US);
        uint64_t calls = 1 + random_below(4);
        for (uint64_t n = 0; n < calls; n++)
            must(pread(file, leaf, sizeof leaf, 0) == sizeof leaf, "reading cpuid");
        uint64_t called = now();
        await(&w);
        log_fault(w.ran.begin, w.ran.end);
        log_ran(&w.ran);
        /* The reader may have been late: then nothing is nested, and the log says so. */
        field_number("calls", called < w.ran.end ? calls : 0);
        log_waker();
        logged();
    }
}

static int packets, to;

static void sends(struct waiter *w)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0x7f000001) };
    static char bytes[8192];
    w->ran = (struct ran){ .who = myself(), .begin = now() };
    for (int i = 0; i < packets; i++)
        sendto(to, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&at, sizeof at);
    w->ran.end = now();
}

/* A thread that sends to the loopback device: a softirq within its own turn receives its packets. */
void own_packets(void)
{
    struct waiter w = { .priority = 20, .work = sends };
    random_name(w.name);
    to = socket(AF_INET, SOCK_DGRAM, 0);
    must(to >= 0, "socket");
    start_waiter(&w);
    for (int i = 0; i < set.count; i++) {
        pause_between();
        packets = 50 + (int)random_below(100);
        ask(&w);
        await(&w);
        log_fault(w.ran.begin, w.ran.end);
        field_who("", &w.ran.who);
        logged();
    }
}

static void calls_long(struct waiter *w)
{
    static char bytes[1 << 20];
    int file = open("/dev/urandom", O_RDONLY);
    w->ran = (struct ran){ .who = myself(), .begin = now() };
    must(read(file, bytes, 700000 + random_below(300000)) > 0, "reading /dev/urandom");
    w->ran.end = now();
    close(file);
}

/* A thread that stays in one system call without any recorded event. */
void long_call(void)
{
    struct waiter w = { .priority = 33, .work = calls_long };
    random_name(w.name);
    start_waiter(&w);
    for (int i = 0; i < set.count; i++) {
        pause_between();
        ask(&w);
        await(&w);
        log_fault(w.ran.begin, w.ran.end);
        field_who("", &w.ran.who);
        logged();
    }
}

/* A thread of another CPU that moves itself here, works, and moves back. */
void self_moved(void)
{
    char name[16];
    random_name(name);
    take_name(name);
    fifo(0, 25);
    for (int i = 0; i < set.count; i++) {
        pause_between();
        pin(0, set.cpu);
        struct ran ran = burn(500 * US + random_below(2500 * US));
        pin(0, set.other);
        log_fault(ran.begin, ran.end);
        log_ran(&ran);
        logged();
    }
}

/* A thread that is woken by turns on both CPUs. `on` is where its next turn must be. */
static struct waiter sleeper = { .priority = 35, .elsewhere = 1 };
static int on;

static void burns_there(struct waiter *w)
{
    must(sched_getcpu() == on, "the woken thread is on another CPU");
    w->ran = burn(w->length);
    must(sched_getcpu() == on, "the woken thread is on another CPU");
}

static void wakes_sleeper(struct waiter *w)
{
    w->ran.who = myself();
    must(sched_getcpu() == set.other, "the waking thread is on another CPU");
    ask(&sleeper);
}

/* Waits until a thread of ours is blocked. */
static void await_sleep(int tid)
{
    char path[64], stat[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    for (char state = 0; state != 'S';) {
        pause_ns(MS);
        FILE *file = fopen(path, "r");
        must(file && fgets(stat, sizeof stat, file), path);
        fclose(file);
        /* Its name may contain parentheses, too. */
        char *after = strrchr(stat, ')');
        must(!!after, path);
        state = after[2];
    }
    pause_ns(MS);
}

/* A thread that sleeps on the other CPU: one thread of that CPU wakes it there; while it sleeps again, only its affinity
 * changes; then a second thread of that CPU wakes it, and this wake-up moves it here. */
void moved_waker(void)
{
    static struct waiter first = { .priority = 30, .elsewhere = 1, .work = wakes_sleeper },
                         second = { .priority = 30, .elsewhere = 1, .work = wakes_sleeper };
    sleeper.work = burns_there;
    struct waiter *all[] = { &sleeper, &first, &second };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        random_name(all[i]->name);
        start_waiter(all[i]);
    }
    for (int i = 0; i < set.count; i++) {
        pause_between();
        on = set.other;
        sleeper.length = 100 * US;
        ask(&first);
        await(&first);
        await(&sleeper);
        int tid = sleeper.ran.who.tid;
        await_sleep(tid);
        pin(tid, set.cpu);
        pause_ns(MS + random_below(10 * MS));
        on = set.cpu;
        /* Longer than the sleep of a probe that wakes every millisecond. */
        sleeper.length = 1500 * US + random_below(2500 * US);
        ask(&second);
        await(&second);
        await(&sleeper);
        log_fault(sleeper.ran.begin, sleeper.ran.end);
        log_ran(&sleeper.ran);
        field_who("sender_", &second.ran.who);
        logged();
        await_sleep(tid);
        pin(tid, set.other);
    }
}
