/* Makes every system call of a command slower by a filter of so many instructions (seccomp(2)), and
 * becomes the command: a slowdown of known size for bench/compare-power.sh.
 *
 *   slower-calls INSTRUCTIONS COMMAND [ARG...]       (0: no filter)
 *   slower-calls --worth INSTRUCTIONS                nanoseconds a hop, without and with it
 *
 * Its cost is measured here without switchcost: two processes on one CPU pass a byte by pipes for some
 * thousand laps without the filter, then as many with it. Both parts have the same processes, so pages and
 * caches do not differ. A filter cannot be removed, so the order is fixed; with 0 instructions only the order
 * differs.
 *
 * The filter allows every call. From two instructions on it reads an argument of the call, so that the
 * kernel cannot cache its answer by the call's number (kernel/seccomp.c, seccomp_is_const_allow). A filter
 * of one instruction is cached: it is the cheapest. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* The kernel's limit (BPF_MAXINSNS). */
#define MOST 4096

static int filter(unsigned count)
{
	struct sock_filter code[MOST];
	struct sock_fprog program = { .len = (unsigned short)count, .filter = code };

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, args));
	for (unsigned i = 1; i < count; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, i);
	code[count - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	/* Without it only CAP_SYS_ADMIN may set a filter. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

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
