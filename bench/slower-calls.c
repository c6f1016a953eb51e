/* Makes every system call of a command slower by a filter of so many instructions (seccomp(2)), and
 * becomes the command: a slowdown of known size for bench/compare-power.sh.
 *
 *   slower-calls INSTRUCTIONS COMMAND [ARG...]       (0: no filter)
 *   slower-calls --worth INSTRUCTIONS                nanoseconds a hop, without and with it
 *
 * Its cost is measured here without switchcost: two processes on one CPU pass a byte by pipes for some
 * thousand laps without the filter, then as many with it. Both parts have the same processes, so pages and
 * caches do not differ. A filter cannot be removed, so the order is fixed; with 0 instructions only the order
 * differs. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "slow-filter.h"

static void fail(const char *what)
{
	fprintf(stderr, "slower-calls: %s: %s\n", what, strerror(errno));
	exit(126);
}

static void filter_or_fail(unsigned count)
{
	if (count > 0 && filter(count) != 0)
		fail("cannot set the filter (seccomp(2))");
}

/* The last CPU that is allowed: device interrupts are mostly on the first. */
static void stay_on_one_cpu(void)
{
	cpu_set_t allowed, one;
	int last = 0;

	if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
		fail("sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			last = cpu;
	CPU_ZERO(&one);
	CPU_SET(last, &one);
	if (sched_setaffinity(0, sizeof one, &one) != 0)
		fail("sched_setaffinity");
}

#define LAPS 10000
#define WARM_UP 1000
#define ANNOUNCE_FILTER 'f'

static void lap(int to, int from, char token)
{
	if (write(to, &token, 1) != 1 || read(from, &token, 1) != 1)
		fail("a token was lost");
}

static double ns_per_hop(int to, int from)
{
	struct timespec start, end;

	for (int i = 0; i < WARM_UP; i++)
		lap(to, from, 0);
	clock_gettime(CLOCK_MONOTONIC_RAW, &start);
	for (int i = 0; i < LAPS; i++)
		lap(to, from, 0);
	clock_gettime(CLOCK_MONOTONIC_RAW, &end);
	return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) /
	       (2.0 * LAPS);
}

static int worth(unsigned count)
{
	int there[2], back[2];
	double without, with;
	char token;

	stay_on_one_cpu();
	if (pipe(there) != 0 || pipe(back) != 0)
		fail("pipe");
	switch (fork()) {
	case -1:
		fail("fork");
		break;
	case 0:
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(there[1]);
		while (read(there[0], &token, 1) == 1) {
			if (token == ANNOUNCE_FILTER)
				filter_or_fail(count);
			if (write(back[1], &token, 1) != 1)
				break;
		}
		_exit(0);
	}
	without = ns_per_hop(there[1], back[0]);
	lap(there[1], back[0], ANNOUNCE_FILTER);
	filter_or_fail(count);
	with = ns_per_hop(there[1], back[0]);
	printf("[%.2f,%.2f]\n", without, with);
	return 0;
}

static unsigned instructions(const char *word)
{
	char *end;
	unsigned long count;

	errno = 0;
	count = strtoul(word, &end, 10);
	if (errno != 0 || *end != '\0' || end == word || count > MOST) {
		fprintf(stderr, "slower-calls: %s: accepted: 0 to %d instructions\n", word, MOST);
		exit(2);
	}
	return (unsigned)count;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: slower-calls INSTRUCTIONS COMMAND [ARG...]\n"
				"       slower-calls --worth INSTRUCTIONS\n");
		return 2;
	}
	if (strcmp(argv[1], "--worth") == 0)
		return worth(instructions(argv[2]));
	filter_or_fail(instructions(argv[1]));
	execvp(argv[2], argv + 2);
	fprintf(stderr, "slower-calls: %s: %s\n", argv[2], strerror(errno));
	return 127;
}
