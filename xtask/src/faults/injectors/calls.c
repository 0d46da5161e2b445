/* Work that another CPU causes on the measured CPU: remote function calls and queued work. */
#include "injector.h"
#include <linux/perf_event.h>

static void log_call(uint64_t begin)
{
    log_fault(begin, now());
    log_waker();
    logged();
}

static void new_name(void)
{
    char name[16];
    random_name(name);
    take_name(name);
}

/* Reads a counter that counts on the measured CPU. */
void perf_read(void)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof attr, .config = PERF_COUNT_SW_CPU_CLOCK };
    int event = (int)syscall(SYS_perf_event_open, &attr, -1, set.cpu, -1, 0);
    must(event >= 0, "perf_event_open");
    for (int i = 0; i < set.count; i++) {
        uint64_t value;
        new_name();
        pause_between();
        uint64_t begin = now();
        must(read(event, &value, sizeof value) == sizeof value, "reading the counter");
        log_call(begin);
    }
}

/* Executes CPUID on the measured CPU. */
void cpuid_read(void)
{
    int file = cpuid_file();
    for (int i = 0; i < set.count; i++) {
        char leaf[16];
        new_name();
        pause_between();
        uint64_t begin = now();
        must(pread(file, leaf, sizeof leaf, 0) == sizeof leaf, "reading cpuid");
        log_call(begin);
    }
}

/* Switches delay accounting on and off: the kernel changes its own code and interrupts every CPU. */
void code_patch(void)
{
    static const char path[] = "/proc/sys/kernel/task_delayacct";
    int file = open(path, O_RDWR);
    char was = 0;
    must(file >= 0 && pread(file, &was, 1, 0) == 1, path);
    for (int i = 0; i < (set.count + 1) / 2 * 2; i++) {
        char to = (was == '0') == (i % 2 == 0) ? '1' : '0';
        new_name();
        pause_between();
        uint64_t begin = now();
        must(pwrite(file, &to, 1, 0) == 1, path);
        log_call(begin);
    }
    close(file);
}

static int page_file;
static off_t page_at;

static void writes_page(struct waiter *w)
{
    char page[4096] = { 1 };
    w->ran.begin = now();
    must(pwrite(page_file, page, sizeof page, page_at) == sizeof page, "writing a page");
}

/* Pages in the measured CPU's own list: removing them from the cache queues work on that CPU. */
void lru_drain(void)
{
    struct waiter w = { .priority = 20, .work = writes_page };
    char path[512];
    strcpy(w.name, "page-writer");
    snprintf(path, sizeof path, "%s/pages", set.folder);
    page_file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    must(page_file >= 0, path);
    start_waiter(&w);
    for (int i = 0; i < set.count; i++) {
        new_name();
        pause_between();
        page_at = (off_t)i * 4096;
        ask(&w);
        await(&w);
        must(!fdatasync(page_file), "fdatasync");
        uint64_t begin = now();
        posix_fadvise(page_file, page_at, 4096, POSIX_FADV_DONTNEED);
        log_call(begin);
    }
    close(page_file);
    unlink(path);
}
