/* Follows a random cycle through BYTES, one cache line a hop.

   chase BYTES HOPS                   ns of CPU time a hop
   chase BYTES HOPS CPU HZ NEIGHBOUR  lines that a preemption takes: hops that last longer beside a neighbour than alone, over the preemptions;
                                      the neighbour wakes HZ times a second at a real-time priority and writes to NEIGHBOUR bytes. On CPU. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

struct line {
    struct line *next;
    char rest[56];
};

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static struct line *cycle(size_t lines)
{
    size_t bytes = (lines * sizeof(struct line) + (2 << 20) - 1) >> 21 << 21;
    struct line *all = aligned_alloc(2 << 20, bytes);
    size_t *order = malloc(lines * sizeof *order);
    madvise(all, bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at < lines; at++)
        order[at] = at;
    for (size_t at = lines - 1; at > 0; at--) {
        size_t with = next_random() % (at + 1), kept = order[at];
        order[at] = order[with];
        order[with] = kept;
    }
    for (size_t at = 0; at < lines; at++)
        all[order[at]].next = &all[order[(at + 1) % lines]];
    free(order);
    return all;
}

static int neighbour(long hz, size_t bytes)
{
    struct sched_param priority = { .sched_priority = 50 };
    char *all = malloc(bytes + 1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1);
    if (sched_setscheduler(0, SCHED_FIFO, &priority)) {
        perror("sched_setscheduler");
        return 1;
    }
    struct timespec pause = { .tv_nsec = 1000000000 / hz };
    for (;;) {
        nanosleep(&pause, 0);
        for (size_t at = 0; at < bytes; at += 64)
            ((volatile char *)all)[at]++;
    }
}

/* A hop in ticks of the time stamp counter, with the counter's own. */
static struct line *timed(struct line *of, uint64_t *ticks)
{
    _mm_lfence();
    uint64_t start = __rdtsc();
    _mm_lfence();
    of = *(struct line *volatile *)&of->next;
    _mm_lfence();
    *ticks = __rdtsc() - start;
    return of;
}

#define CLASSES 1024

/* Hops by ticks, and preemptions meanwhile. */
static long count(struct line *of, long hops, long *by_ticks)
{
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (long hop = 0; hop < hops; hop++) {
        uint64_t ticks;
        of = timed(of, &ticks);
        by_ticks[ticks < CLASSES ? ticks : CLASSES - 1]++;
    }
    getrusage(RUSAGE_SELF, &after);
    return after.ru_nivcsw - before.ru_nivcsw;
}

static long above(const long *by_ticks, int limit)
{
    long sum = 0;
    for (int at = limit; at < CLASSES; at++)
        sum += by_ticks[at];
    return sum;
}

static int lost(struct line *of, long hops, char **argv)
{
    static long alone[CLASSES], beside[CLASSES];
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(atoi(argv[0]), &one);
    sched_setaffinity(0, sizeof one, &one);
    long own = count(of, hops, alone);
    pid_t pid = fork();
    if (pid == 0)
        _exit(neighbour(atol(argv[1]), strtoul(argv[2], 0, 10)));
    usleep(50000);
    long preemptions = count(of, hops, beside) - own;
    kill(pid, SIGKILL);
    waitpid(pid, 0, 0);
    /* A fifth longer than the middle hop alone, readings included: less than the next level of cache takes more. */
    int middle = 0;
    for (long seen = 0; seen < hops / 2; middle++)
        seen += alone[middle];
    int limit = middle + middle / 5;
    double more = above(beside, limit) - above(alone, limit);
    printf("%.1f %ld %d\n", preemptions > 0 ? more / preemptions : 0, preemptions, limit);
    return 0;
}

int main(int argc, char **argv)
{
    size_t lines = argc > 2 ? strtoul(argv[1], 0, 10) / sizeof(struct line) : 0;
    if (lines < 2 || (argc > 3 && argc != 6)) {
        fprintf(stderr, "usage: chase BYTES HOPS [CPU HZ NEIGHBOUR]\n");
        return 2;
    }
    struct line *all = cycle(lines), *of = all;
    for (size_t hop = 0; hop < 2 * lines; hop++)
        of = of->next;
    struct timespec start, end;
    long hops = atol(argv[2]);
    if (argc == 6)
        return lost(of, hops, argv + 3);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (long hop = 0; hop < hops; hop++)
        of = of->next;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("%.4f %d\n", ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / hops, of == all);
    return 0;
}
