/* Plants faults in rings of switchcost that run at the same time (LD_PRELOAD), for bench/rings_planted.py. Rings are
 * of two processes by --link sysv-sem, whose calls go through the C library: semop(2) twice a hop.
 *
 *   PLANTED_FILTERS=2,3    these rings, from 1, get the filter of slow-filter.h
 *   PLANTED_INSTRUCTIONS=N instructions of that filter, 1 to 4,096
 *   PLANTED_WRITES=N       writes to the one eventfd of all rings, before each token is passed on
 *   PLANTED_WATCHERS=N     epoll instances that watch it: each write calls them all under the eventfd's lock
 *   PLANTED_MARK=FILE      is created when a plant has taken effect
 *
 * It acts in workers only (`switchcost worker`). A worker forks a leader for each of several rings, and the leader
 * forks the other member: the fork's depth and number tell which ring it is. A single ring is led by the worker. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/sem.h>
#include <unistd.h>

#include "slow-filter.h"

static pid_t (*real_fork)(void);
static int (*real_semop)(int, struct sembuf *, size_t);

/* Nothing is planted where these are zero. */
static const char *filters;
static unsigned long instructions, writes;

static int is_worker, is_leader, is_filtered, is_marked;
/* Children of the worker so far, and the number of the ring that one of them leads. */
static unsigned long forks;
static int shared_counter = -1;

static void fail(const char *what)
{
	fprintf(stderr, "planted-rings: %s: %s\n", what, strerror(errno));
	_exit(126);
}

static unsigned long number(const char *name)
{
	const char *word = getenv(name);

	return word ? strtoul(word, NULL, 10) : 0;
}

static void mark(void)
{
	const char *path = getenv("PLANTED_MARK");
	int file;

	if (is_marked || !path)
		return;
	is_marked = 1;
	file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0)
		fail(path);
	close(file);
}

/* Members inherit the counter and its watchers. What is ready once stays so: nobody waits for it. */
static void open_shared_counter(unsigned long watchers)
{
	struct epoll_event ready = { .events = EPOLLIN };

	shared_counter = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	if (shared_counter < 0)
		fail("eventfd");
	for (; watchers > 0; watchers--) {
		int watcher = epoll_create1(EPOLL_CLOEXEC);

		if (watcher < 0 || epoll_ctl(watcher, EPOLL_CTL_ADD, shared_counter, &ready) != 0)
			fail("epoll");
	}
}

__attribute__((constructor)) static void start(int argc, char **argv)
{
	real_fork = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");
	real_semop = (int (*)(int, struct sembuf *, size_t))dlsym(RTLD_NEXT, "semop");
	is_worker = argc > 1 && strcmp(argv[1], "worker") == 0;
	if (!is_worker)
		return;
	filters = getenv("PLANTED_FILTERS");
	instructions = number("PLANTED_INSTRUCTIONS");
	writes = number("PLANTED_WRITES");
	if (writes > 0)
		open_shared_counter(number("PLANTED_WATCHERS"));
}

static int is_to_be_filtered(unsigned long ring)
{
	const char *word = filters;

	while (word && *word) {
		char *end;

		if (strtoul(word, &end, 10) == ring)
			return 1;
		word = *end ? end + 1 : end;
	}
	return 0;
}

/* A leader is filtered before it forks its member, so that both are. */
static void filter_ring(void)
{
	if (is_filtered || !is_to_be_filtered(forks))
		return;
	is_filtered = 1;
	mark();
	if (filter((unsigned)instructions) != 0)
		fail("seccomp");
}

pid_t fork(void)
{
	pid_t child;

	if (is_worker && is_leader)
		filter_ring();
	child = real_fork();
	if (is_worker && !is_leader) {
		forks += child >= 0;
		is_leader = child == 0;
	}
	return child;
}

static void write_to_shared_counter(void)
{
	const uint64_t one = 1;

	mark();
	for (unsigned long i = 0; i < writes; i++)
		if (write(shared_counter, &one, sizeof one) != sizeof one)
			fail("write to the eventfd");
}

int semop(int set, struct sembuf *operations, size_t count)
{
	if (writes > 0 && operations->sem_op > 0)
		write_to_shared_counter();
	return real_semop(set, operations, count);
}
