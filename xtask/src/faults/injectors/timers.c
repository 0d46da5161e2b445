/* Timers that fire on the measured CPU for threads of another CPU, because they were armed there. */
#include "injector.h"
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/timerfd.h>

/* Time from arming to firing: long enough to return to the other CPU. */
static uint64_t ahead(void) { return 15 * MS + random_below(10 * MS); }

/* A CLOCK_MONOTONIC time on the log's clock. */
static uint64_t raw_of(uint64_t monotonic) { return now() + (monotonic - now_of(CLOCK_MONOTONIC)); }

static void log_timer(uint64_t due, uint64_t seen, struct who *owner)
{
    log_fault(due, seen);
    if (owner)
        field_who("sender_", owner);
    logged();
}

/* setitimer(ITIMER_REAL), whose signal a thread on the other CPU receives. */
void real_itimer(void)
{
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    struct who me = myself();
    for (int i = 0; i < set.count; i++) {
        pause_between();
        struct itimerval at = { .it_value.tv_usec = (suseconds_t)(ahead() / US) };
        pin(0, set.cpu);
        uint64_t due = now() + (uint64_t)at.it_value.tv_usec * US;
        must(!setitimer(ITIMER_REAL, &at, NULL), "setitimer");
        pin(0, set.other);
        must(sigwaitinfo(&alarm, NULL) == SIGALRM, "sigwaitinfo");
        log_timer(due, now(), &me);
    }
}

/* timer_create, whose signal a thread on the other CPU receives. */
void posix_timer(void)
{
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
    timer_t timer;
    must(!timer_create(CLOCK_BOOTTIME, &event, &timer), "timer_create");
    struct who me = myself();
    for (int i = 0; i < set.count; i++) {
        pause_between();
        struct itimerspec at = { .it_value.tv_nsec = (long)ahead() };
        pin(0, set.cpu);
        uint64_t due = now() + (uint64_t)at.it_value.tv_nsec;
        must(!timer_settime(timer, 0, &at, NULL), "timer_settime");
        pin(0, set.other);
        must(sigwaitinfo(&alarm, NULL) == SIGRTMIN, "sigwaitinfo");
        log_timer(due, now(), &me);
    }
}

/* A timerfd read by a thread on the other CPU. */
void timer_descriptor(void)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    must(timer >= 0, "timerfd_create");
    for (int i = 0; i < set.count; i++) {
        uint64_t count;
        pause_between();
        uint64_t due = now_of(CLOCK_MONOTONIC) + ahead();
        struct itimerspec at = { .it_value = { (time_t)(due / 1000000000ull), (long)(due % 1000000000ull) } };
        pin(0, set.cpu);
        must(!timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL), "timerfd_settime");
        pin(0, set.other);
        must(read(timer, &count, sizeof count) == sizeof count, "reading the timer");
        log_timer(raw_of(due), now(), NULL);
    }
}

static _Atomic uint64_t sleeps_until, woke_at;

static void *sleeps(void *arg)
{
    *(int *)arg = (int)syscall(SYS_gettid);
    for (;;) {
        uint64_t until = atomic_load(&sleeps_until);
        if (!until) {
            pause_ns(MS);
            continue;
        }
        pin(0, set.cpu);
        struct timespec at = { (time_t)(until / 1000000000ull), (long)(until % 1000000000ull) };
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
            ;
        atomic_store(&sleeps_until, 0);
        atomic_store(&woke_at, now());
    }
    return NULL;
}

/* A thread that falls asleep here and is moved to the other CPU while it sleeps: its timer stays here. */
void moved_sleeper(void)
{
    static _Atomic int tid;
    pthread_t thread;
    must(!pthread_create(&thread, NULL, sleeps, (void *)&tid), "pthread_create");
    for (int i = 0; i < set.count; i++) {
        pause_between();
        atomic_store(&woke_at, 0);
        uint64_t due = now_of(CLOCK_MONOTONIC) + ahead();
        atomic_store(&sleeps_until, due);
        pause_ns(7 * MS);
        pin(tid, set.other);
        while (!atomic_load(&woke_at))
            pause_ns(MS);
        log_timer(raw_of(due), atomic_load(&woke_at), NULL);
    }
}

/* A perf event that samples the measured CPU by its clock, as profilers do without hardware counters. */
void perf_sampling(void)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_CPU_CLOCK,
                                    .sample_period = 31 * MS + random_below(8 * MS), .sample_type = PERF_SAMPLE_TIME,
                                    .use_clockid = 1, .clockid = CLOCK_MONOTONIC_RAW };
    int event = (int)syscall(SYS_perf_event_open, &attr, -1, set.cpu, -1, 0);
    must(event >= 0, "perf_event_open");
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct perf_event_mmap_page *head = mmap(NULL, page * 9, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    must(head != MAP_FAILED, "mmap of the samples");
    char *bytes = (char *)head + page;
    for (int taken = 0; taken < set.count;) {
        pause_ns(30 * MS);
        while (head->data_tail < __atomic_load_n(&head->data_head, __ATOMIC_ACQUIRE) && taken < set.count) {
            /* Records are multiples of eight bytes, and samples here have sixteen, so no sample is split. */
            struct perf_event_header record;
            memcpy(&record, bytes + head->data_tail % (8 * page), sizeof record);
            if (record.type == PERF_RECORD_SAMPLE) {
                uint64_t time;
                memcpy(&time, bytes + (head->data_tail + 8) % (8 * page), sizeof time);
                log_timer(time, time + US, NULL);
                taken++;
            }
            head->data_tail += record.size;
        }
    }
    close(event);
}
