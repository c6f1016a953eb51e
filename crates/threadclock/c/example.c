/* Times a loop by getpinfo() and by the kernel's clock, and sees that they agree, that sleeping is not
 * counted and that errors come with their errno. Exits 0 if all is well. Compiled and run by
 * tests/c_interface.rs. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "threadclock.h"

/* The header and the library agree if these assignments compile and the calls below work. */
static int (*const own)(pid_t, struct threadclock_time *) = getpinfo;
static int (*const whole)(pid_t, struct threadclock_time *) = getpinfo_process;
static uint64_t (*const now_ns)(void) = threadclock_now_ns;
static const char *(*const tier)(void) = threadclock_tier;
static uint64_t (*const bound_ns)(void) = threadclock_error_bound_ns;

_Static_assert(sizeof(struct threadclock_time) == 16, "two 64-bit words");

static uint64_t kernel_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median over batches of a call's CPU time. */
static double cost_ns(uint64_t (*call)(void))
{
    enum { BATCHES = 51, CALLS = 5000 };
    double batches[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t start = now_ns();
        for (int i = 0; i < CALLS; i++)
            call();
        batches[batch] = (double)(now_ns() - start) / CALLS;
    }
    qsort(batches, BATCHES, sizeof *batches, by_size);
    return batches[BATCHES / 2];
}

#define EXPECT(what)                                                    \
    do {                                                                \
        if (!(what)) {                                                  \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);  \
            return 1;                                                   \
        }                                                               \
    } while (0)

int main(void)
{
    struct threadclock_time before, after, process;
    volatile uint64_t sum = 0;

    EXPECT(own(0, &before) == 0);
    for (uint64_t i = 0; i < 1000000; i++)
        sum += i;
    EXPECT(own(0, &after) == 0);
    EXPECT(after.ns > before.ns && after.cycles >= before.cycles);

    uint64_t last = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t low = kernel_ns(), read = now_ns(), high = kernel_ns();
        EXPECT(read >= last);
        EXPECT(read + bound_ns() >= low && read <= high + bound_ns());
        last = read;
    }

    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    uint64_t slept = now_ns();
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    slept = now_ns() - slept;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double wall = 1e9 * (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec);
    EXPECT((double)slept < wall / 2);

    last = now_ns();
    EXPECT(whole(0, &process) == 0 && process.ns >= last - bound_ns());
    EXPECT(whole(getpid(), &process) == 0);
    EXPECT(own(gettid(), &process) == 0 && process.ns > 0);

    errno = 0;
    EXPECT(own(-1, &process) == -1 && errno == EINVAL);
    EXPECT(own(0, NULL) == -1 && errno == EINVAL);
    EXPECT(own(4194304, &process) == -1 && errno == ESRCH);
    EXPECT(whole(4194304, &process) == -1 && errno == ESRCH);

    errno = 0;
    EXPECT(threadclock_others_open("/nowhere/threads") == NULL && errno != 0);
    EXPECT(threadclock_others_ns(NULL, 1, &last) == -1 && errno == EINVAL);
    threadclock_others_close(NULL);

    printf("%s: loop of %" PRIu64 " ns, %" PRIu64 " cycles; bound %" PRIu64 " ns\n", tier(),
           after.ns - before.ns, after.cycles - before.cycles, bound_ns());
    if (strcmp(tier(), "kernel") == 0)
        puts("no fast tier here: each reading asks the kernel");
    printf("sleep: %.3f ms of CPU time in %.3f ms\n", (double)slept / 1e6, wall / 1e6);
    double own = cost_ns(now_ns);
    printf("a reading: %.1f ns; of the kernel's clock: %.1f ns\n", own, cost_ns(kernel_ns));
    return 0;
}
