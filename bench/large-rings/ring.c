/* A ring of processes over pipes with nothing else in it: the least that a large ring can take. Each process makes
 * the channel before the member behind it, and holds three descriptors.
 *
 *   ring MEMBERS LAPS CPU      prints nanoseconds: set-up, laps, end, all */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <signal.h>

static long long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void check(int result, const char *call) {
    if (result < 0) {
        perror(call);
        exit(1);
    }
}

int main(int count, char **words) {
    if (count != 4) {
        fprintf(stderr, "usage: ring MEMBERS LAPS CPU\n");
        return 2;
    }
    int members = atoi(words[1]), first[2], next[2];
    long laps = atol(words[2]);
    char token = 1;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(atoi(words[3]), &cpus);
    check(sched_setaffinity(0, sizeof cpus, &cpus), "sched_setaffinity");
    long long start = now_ns();
    check(pipe(first), "pipe");
    int in = first[0];
    for (int member = 1; member < members; member++) {
        check(pipe(next), "pipe");
        pid_t child = fork();
        check(child, "fork");
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            close(next[0]);
            close(first[1]);
            while (read(in, &token, 1) == 1 && write(next[1], &token, 1) == 1) {
            }
            _exit(0);
        }
        close(in);
        close(next[1]);
        in = next[0];
    }
    long long made = now_ns();
    for (long lap = 0; lap < laps; lap++) {
        if (write(first[1], &token, 1) != 1 || read(in, &token, 1) != 1) {
            return 1;
        }
    }
    long long lapped = now_ns();
    close(first[1]);
    while (wait(NULL) > 0) {
    }
    long long end = now_ns();
    printf("%lld %lld %lld %lld\n", made - start, lapped - made, end - lapped, end - start);
    return 0;
}
