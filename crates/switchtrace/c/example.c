/* Reads the CPU time of another thread while it works, and when it has ended, and sees that errors come
 * with their errno. Exits 0 if all is well, 77 without the privilege. Compiled and run by
 * tests/c_interface.rs. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "switchtrace.h"

_Static_assert(sizeof(struct switchtrace_time) == 64, "as Rust has it");
_Static_assert(offsetof(struct switchtrace_time, running) == 56, "as Rust has it");

#define EXPECT(what)                                                    \
    do {                                                                \
        if (!(what)) {                                                  \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);  \
            return 1;                                                   \
        }                                                               \
    } while (0)

static atomic_int worker_id, stop;
static uint64_t worker_ns;

static void *work(void *unused)
{
    struct timespec time;

    worker_id = gettid();
    while (!stop)
        ;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    worker_ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    return unused;
}

int main(void)
{
    char message[512];
    struct switchtrace_time time;
    struct switchtrace *trace = switchtrace_open(message, sizeof message);
    pthread_t worker;

    if (!trace) {
        printf("skipped: %s (%s)\n", message, strerror(errno));
        return 77;
    }
    EXPECT(pthread_create(&worker, NULL, work, NULL) == 0);
    while (!worker_id)
        usleep(100);
    while (switchtrace_cpu_ns(trace, worker_id) < 20000000)
        ;
    EXPECT(switchtrace_read(trace, worker_id, &time) == 0);
    EXPECT(time.tgid == (uint32_t)getpid() && !time.ended);
    printf("the worker has run for %" PRIu64 " ns", time.cpu_ns);
    stop = 1;
    EXPECT(pthread_join(worker, NULL) == 0);
    /* It is joined a little before its last switch. */
    for (int looks = 0; looks < 1000 && !time.ended; looks++) {
        usleep(1000);
        EXPECT(switchtrace_read(trace, worker_id, &time) == 0);
    }
    EXPECT(time.ended && !time.running && time.cpu_ns >= worker_ns);
    printf(", %" PRIu64 " in all; preempted %" PRIu64 " times\n", time.cpu_ns, time.involuntary);

    errno = 0;
    EXPECT(switchtrace_read(trace, -1, &time) == -1 && errno == EINVAL);
    EXPECT(switchtrace_read(trace, 0, &time) == -1 && errno == ESRCH);
    EXPECT(switchtrace_read(NULL, 1, &time) == -1 && errno == EINVAL);
    EXPECT(switchtrace_read(trace, 1, NULL) == -1 && errno == EINVAL);
    EXPECT(switchtrace_cpu_ns(trace, -1) == 0);
    EXPECT(switchtrace_pin(trace, "/nowhere/threads") == -1 && errno != 0);
    switchtrace_close(trace);
    switchtrace_close(NULL);
    return 0;
}
