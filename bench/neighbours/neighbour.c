// What runs beside a ring: neighbour KIND CPU, until it is killed with its process group.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static unsigned long now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000UL + t.tv_nsec / 1000;
}

static void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set)) exit(1);
}

static void spin(volatile long turns) { while (turns > 0) turns--; }

// A second process that dies with the first.
static int beside(void) {
    pid_t child = fork();
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child == 0;
}

static void busy(void) { for (;;) spin(1000); }

static void bursts(void) {
    for (;;) {
        for (unsigned long end = now_us() + 40000; now_us() < end;) spin(1000);
        usleep(93000);
    }
}

static void pingpong(void) {
    int to[2], from[2];
    char byte = 0;
    if (pipe(to) || pipe(from)) exit(1);
    int first = !beside();
    int in = first ? from[0] : to[0], out = first ? to[1] : from[1];
    if (first && write(out, &byte, 1) != 1) exit(1);
    while (read(in, &byte, 1) == 1) {
        spin(3000);
        if (write(out, &byte, 1) != 1) exit(1);
    }
}

static void walk_and_yield(void) {
    for (int i = 1; i < 8 && !beside(); i++) {}
    char *memory = malloc(64 << 10);
    for (;;) {
        for (int at = 0; at < 64 << 10; at += 64) memory[at]++;
        sched_yield();
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static int work;

static void *serve(void *unused) {
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!work) pthread_cond_wait(&turn, &lock);
        work--;
        pthread_mutex_unlock(&lock);
        spin(20000);
    }
    return unused;
}

static void server(void) {
    pthread_t thread;
    for (int i = 0; i < 15; i++)
        if (pthread_create(&thread, NULL, serve, NULL)) exit(1);
    for (;;) {
        usleep(200);
        pthread_mutex_lock(&lock);
        if (work < 16) work += 4;
        pthread_cond_broadcast(&turn);
        pthread_mutex_unlock(&lock);
    }
}

static void hog(void) {
    size_t bytes = 64 << 20;
    char *memory = malloc(bytes);
    for (;;) memset(memory, getpid(), bytes);
}

int main(int argc, char **argv) {
    if (argc != 3) return 1;
    pin(atoi(argv[2]));
    prctl(PR_SET_NAME, "neighbour");
    struct { const char *name; void (*run)(void); } kinds[] = {
        {"busy", busy}, {"bursts", bursts}, {"pingpong", pingpong},
        {"yielders", walk_and_yield}, {"server", server}, {"hog", hog},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(argv[1], kinds[i].name)) kinds[i].run();
    return 1;
}
