/* The CPU time of a thread, for the price of one time-stamp read.
 * Link with `pkg-config --cflags --libs threadclock`. Linux only. */
#ifndef THREADCLOCK_H
#define THREADCLOCK_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct threadclock_time {
    uint64_t ns;     /* nanoseconds of CPU time */
    uint64_t cycles; /* the same in ticks of the time-stamp counter; 0 if there is none */
};

/* The CPU time of one thread; id 0 is the calling thread, a process's id its first thread.
 * 0, or -1 with errno ESRCH (no such task), EINVAL (negative id, null out) or EPERM (hidden). */
int getpinfo(pid_t id, struct threadclock_time *out);

/* The CPU time of all threads of a process, ended ones included; pid 0 is the caller's.
 * Returns as getpinfo does; EINVAL also if pid is a thread but not its process's first. */
int getpinfo_process(pid_t pid, struct threadclock_time *out);

/* The calling thread's CPU time in nanoseconds. Never goes backwards within a thread. May be
 * called in a signal handler once the thread has called it outside of one. */
uint64_t threadclock_now_ns(void);

/* How the calling thread's time is read: "rseq", "perf-page", "system-call" or "kernel". Do not
 * free. */
const char *threadclock_tier(void);

/* How far threadclock_now_ns() can be from CLOCK_THREAD_CPUTIME_ID read around it. */
uint64_t threadclock_error_bound_ns(void);

/* Reads other threads from a table that a switchtrace has pinned. For one thread at a time. */
struct threadclock_others;

/* The table at this path in a BPF file system. Null with errno set if there is none, or nobody keeps
 * it up to date (ESTALE). Needs no privilege (Linux 5.18). */
struct threadclock_others *threadclock_others_open(const char *path);

/* The CPU time of this thread in *ns; the id is that of the initial pid namespace. 0, or -1 with errno
 * ESRCH (no such thread has been seen), EINVAL (null, negative id) or ESTALE (the tracer has ended). */
int threadclock_others_ns(const struct threadclock_others *others, pid_t id, uint64_t *ns);

/* Frees it. Null is ignored. */
void threadclock_others_close(struct threadclock_others *others);

#ifdef __cplusplus
}
#endif

#endif
