/* A program whose loss to context switches is known: THREADS threads on one CPU, each of which works for PERIOD
 * microseconds on an array of its own and then yields. The work of a period is the same number of steps with one thread
 * and with many; what it takes more CPU time with many is what switching costs.
 *
 *     switch-loss CPU THREADS PERIOD_US BYTES STEPS PERIODS
 *
 * STEPS is the work of a period: 0 measures how many take PERIOD_US alone, prints them and ends. Otherwise each thread
 * works PERIODS periods. Prints one line: CPU nanoseconds of the work of all threads, switches.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

static size_t lines;
static long steps, periods;
static pthread_barrier_t ready;

struct place {
	struct place *next;
	long value;
	char rest[48];
};

struct thread {
	pthread_t id;
	struct place *at;
	int64_t cpu_ns;
	long switches;
	long sum;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long switches(void)
{
	struct rusage used;
	getrusage(RUSAGE_THREAD, &used);
	return used.ru_nvcsw + used.ru_nivcsw;
}

/* One period. Without an array additions that depend on each other; with one a walk in random order, each line read
 * and written. It goes on where the last one stopped. */
static void work(struct thread *own, long count)
{
	struct place *at = own->at;
	long sum = own->sum;
	if (at == NULL) {
		for (long i = 0; i < count; i++) {
			__asm__ volatile("" : "+r"(sum));
			sum = sum * 5 + i;
		}
	} else {
		for (long i = 0; i < count; i++) {
			sum += at->value++;
			at = at->next;
		}
	}
	own->at = at;
	own->sum = sum;
}

/* A cycle through all lines in random order. */
static struct place *array(unsigned seed)
{
	if (lines == 0)
		return NULL;
	struct place *all = mmap(NULL, lines * sizeof *all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t *order = malloc(lines * sizeof *order);
	if (all == MAP_FAILED || order == NULL)
		fail("array");
	for (size_t i = 0; i < lines; i++)
		order[i] = i;
	for (size_t i = lines - 1; i > 0; i--) {
		size_t other = (size_t)rand_r(&seed) * (i + 1) / ((size_t)RAND_MAX + 1), kept = order[i];
		order[i] = order[other];
		order[other] = kept;
	}
	for (size_t i = 0; i < lines; i++)
		all[order[i]].next = &all[order[(i + 1) % lines]];
	free(order);
	return all;
}

static void *run(void *argument)
{
	struct thread *own = argument;
	work(own, steps > 0 && lines > 0 ? (long)lines : steps);
	pthread_barrier_wait(&ready);
	int64_t before = cpu_ns();
	long earlier = switches();
	for (long i = 0; i < periods; i++) {
		work(own, steps);
		sched_yield();
	}
	own->cpu_ns = cpu_ns() - before;
	own->switches = switches() - earlier;
	return NULL;
}

/* Steps that take so many microseconds alone: of several attempts the most, which nothing disturbed. */
static long calibrate(long us)
{
	struct thread own = {.at = array(1)};
	long count = 1000, most = 0;
	work(&own, lines > 0 ? 2 * (long)lines : 1000000);
	for (int attempt = 0; attempt < 200; attempt++) {
		int64_t before = cpu_ns();
		work(&own, count);
		int64_t took = cpu_ns() - before;
		long fit = took > 0 ? (long)((double)count * us * 1000 / took) : count;
		if (attempt >= 20 && fit > most)
			most = fit;
		count = fit > 100 ? fit : 100;
	}
	return most;
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		fprintf(stderr, "usage: %s CPU THREADS PERIOD_US BYTES STEPS PERIODS\n", argv[0]);
		return 2;
	}
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(atoi(argv[1]), &one);
	if (sched_setaffinity(0, sizeof one, &one) != 0)
		fail("sched_setaffinity");
	int count = atoi(argv[2]);
	long us = atol(argv[3]);
	lines = strtoul(argv[4], NULL, 0) / sizeof(struct place);
	steps = atol(argv[5]);
	periods = atol(argv[6]);
	if (steps == 0) {
		printf("%ld\n", calibrate(us));
		return 0;
	}
	struct thread *all = calloc(count, sizeof *all);
	pthread_barrier_init(&ready, NULL, count);
	for (int i = 0; i < count; i++) {
		all[i].at = array(i + 1);
		if (pthread_create(&all[i].id, NULL, run, &all[i]) != 0)
			fail("pthread_create");
	}
	int64_t total = 0;
	long switched = 0;
	for (int i = 0; i < count; i++) {
		pthread_join(all[i].id, NULL);
		total += all[i].cpu_ns;
		switched += all[i].switches;
	}
	printf("%lld %ld\n", (long long)total, switched);
	return 0;
}
