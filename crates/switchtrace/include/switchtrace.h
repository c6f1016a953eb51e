/* The CPU time of any thread of the system for the price of a time stamp, by eBPF.
 * Link with -lswitchtrace. Linux only. Readers without privileges: threadclock.h. */
#ifndef SWITCHTRACE_H
#define SWITCHTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts are the kernel's, over the thread's life, as of its last switch. */
struct switchtrace_time {
    uint64_t cpu_ns;      /* CPU time, up to now if it runs */
    uint64_t kernel_ns;   /* the kernel's own figure when it was last switched out */
    uint64_t waited_ns;   /* in the run queue without running */
    uint64_t start_ns;    /* CLOCK_MONOTONIC at its creation: tells apart threads that had one id */
    uint64_t voluntary;   /* switches because it slept */
    uint64_t involuntary; /* switches while it could have run on */
    uint32_t migrations;  /* moves to another CPU */
    uint32_t tgid;        /* its process */
    bool running;         /* on a CPU now */
    bool ended;           /* the figures are final */
};

/* Traces every switch until it is closed, or the process ends. One thread at a time may use it. */
struct switchtrace;

/* Begins to trace. Needs CAP_BPF and CAP_PERFMON, and a kernel with BTF. Null with errno set if it
 * cannot; what is missing is then written to message, if that is not null, as a string of at most
 * bytes with its NUL. */
struct switchtrace *switchtrace_open(char *message, size_t bytes);

/* One thread, by its id in the initial pid namespace. 0, or -1 with errno ESRCH (no such thread has
 * been seen), EINVAL (null, negative id) or ESTALE (the caller is in another pid namespace). */
int switchtrace_read(const struct switchtrace *trace, pid_t id, struct switchtrace_time *out);

/* The CPU time alone, in nanoseconds; 0 if no such thread has been seen. */
uint64_t switchtrace_cpu_ns(const struct switchtrace *trace, pid_t id);

/* Pins the table at a path in a BPF file system, for threadclock_others_open(). 0, or -1 with errno. */
int switchtrace_pin(const struct switchtrace *trace, const char *path);

/* Detaches and frees everything. Null is ignored. */
void switchtrace_close(struct switchtrace *trace);

#ifdef __cplusplus
}
#endif

#endif
