/* Shared by all injectors: clocks, placing, names, and the log. */
#ifndef INJECTOR_H
#define INJECTOR_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull
#define US 1000ull

/* A thread's id and current name. */
struct who { int tid; char name[16]; };

/* What one thread did: when it ran, and how much of that time its own code used. */
struct ran { struct who who; uint64_t begin, end, busy; };

struct setting {
    int count;          /* faults to inject */
    int cpu, other;     /* the measured CPU, and another one for this program's own thread */
    const char *self;   /* this program's file */
    const char *folder; /* our own folder for files and programs */
    const char *kind;
    int victim;         /* its thread id, or 0 */
};
extern struct setting set;

void die(const char *what) __attribute__((noreturn));
void must(int ok, const char *what);
uint64_t now(void);            /* CLOCK_MONOTONIC_RAW, ns */
uint64_t now_of(clockid_t);    /* another clock, ns */
void pause_ns(uint64_t ns);
void pause_between(void);      /* 20 to 60 ms, so that faults have different distances */
uint64_t random_below(uint64_t limit);
void pin(int tid, int cpu);
void fifo(int tid, int priority);
void random_name(char name[16]);
void take_name(const char *name);
struct who myself(void);
/* Runs for this long; `busy` is that time without gaps of 2 us or more between clock reads. */
struct ran burn(uint64_t ns);
/* One fault for the log: times, then fields by `field_*`, then `logged`. */
void log_fault(uint64_t begin, uint64_t end);
void field_number(const char *key, uint64_t value);
void field_who(const char *prefix, const struct who *who);
void logged(void);

/* A SCHED_FIFO thread that waits on a futex, and does `work` on each wake-up. */
struct waiter {
    pthread_t thread;
    _Atomic uint32_t asked, done;
    int priority, elsewhere, keeps_name; /* elsewhere: on the other CPU */
    char name[16];
    void (*work)(struct waiter *);
    uint64_t length;
    struct ran ran, second;
};
void start_waiter(struct waiter *);
void ask(struct waiter *);     /* wakes it */
void await(struct waiter *);   /* sleeps until the work is done */

/* Kinds by file: each is called once, injects set.count faults and logs each. */
void fifo_futex(void), impostor(void), renamed(void), two_culprits(void), nested_call(void), own_packets(void),
    long_call(void), self_moved(void), moved_waker(void);
void exec_child(void), namespace_child(void), teardown(void), sqpoll(void);
void real_itimer(void), posix_timer(void), timer_descriptor(void), moved_sleeper(void), perf_sampling(void);
void perf_read(void), cpuid_read(void), code_patch(void), lru_drain(void);
void quota(void), nested_quota(void), frozen(void), stopped(void), unmap(void), barrier(void), signalled(void),
    moved_victim(void), throttled(void);

/* The disturbed thread if no jitterscope probe is the victim: a separate process spinning on the measured CPU. */
void start_victim(int real_time);

void burn_as_child(uint64_t ns); /* the work of an executed child; reports to descriptor 3 */
int cpuid_file(void);
uint64_t ran_ns(pid_t);          /* CPU time charged by the scheduler, ns */
void log_ran(const struct ran *);
void log_waker(void);            /* logs this thread as the sender */
#endif
