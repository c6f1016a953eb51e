// A ring of two processes, or of one, with nothing but the ring in it, for bench/against_pipes.py.
//
//     bare-ring CALLS CHANNEL MEMBERS CPU LAPS SLICE_LAPS
//
// CHANNEL is pipe or socket-stream (socketpair(2)).
// CALLS says how a member makes its two system calls in a hop:
//
//   library         by read(3) and write(3) of the C library, as most programs
//   inline          by an instruction in the loop, as the rings of switchcost
//   function        by that instruction in a function of its own
//   function-read   the read in a function of its own, the write in the loop
//   function-write  the write in a function of its own, the read in the loop
//   function-jump   as function, but it returns by an indirect jump, which the return stack does not predict (x86-64)
//
// Built with -DONE_SLOT=1 it is no ring, but a stream through one pipe with room for one item: one process writes and the
// other reads. MEMBERS is 2 then, and a hop is an item.
//
// Two of these with a comma between them take turns, a slice each: their difference is of one process and one time.
//
// All processes run on CPU. With SLICE_LAPS above 0 the laps are cut into slices of so many, with two fixed loops twice
// before and twice after each: the same as switchcost has (crates/probe/src/sys/quanta.rs), so that one rule tells
// which slices had the core for themselves. With 0 nothing is between the laps, and they are one slice.
//
// Prints a line of JSON: hops and counted switches of the timed laps, the times of slices, those of the loops.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef ONE_SLOT
#define ONE_SLOT 0
#endif
#define INLINE static inline __attribute__((always_inline))
#define UNUSED __attribute__((unused))
#define WARM_LAPS 1000
// A run that lasts longer is ended: a lost token leaves both processes asleep.
#define DEADLINE_S 60

enum calls { LIBRARY, IN_LOOP, FUNCTION, FUNCTION_READ, FUNCTION_WRITE, FUNCTION_JUMP, CALLS };
static const char *const CALL_NAMES[CALLS] = {"library",       "inline",         "function",
                                              "function-read", "function-write", "function-jump"};

static void fail(const char *what) {
    fprintf(stderr, "bare-ring: %s: %s\n", what, strerror(errno));
    exit(1);
}

INLINE long in_loop(long number, long descriptor, void *buffer) {
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(descriptor), "S"(buffer), "d"(1L)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = descriptor;
    register void *x1 __asm__("x1") = buffer;
    register long x2 __asm__("x2") = 1;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
    return x0;
#else
#error "the system call instruction of this architecture is missing here"
#endif
}

static __attribute__((noinline)) long in_function(long number, long descriptor, void *buffer) {
    return in_loop(number, descriptor, buffer);
}

#if defined(__x86_64__)
static __attribute__((naked, noinline)) long in_function_jump(UNUSED long number, UNUSED long descriptor,
                                                                      UNUSED void *buffer) {
    __asm__("mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n mov $1, %edx\n syscall\n pop %rcx\n jmp *%rcx");
}
#else
#define in_function_jump in_function
#endif

INLINE long receive_token(enum calls calls, int descriptor, void *token) {
    if (calls == LIBRARY) return read(descriptor, token, 1);
    if (calls == FUNCTION || calls == FUNCTION_READ) return in_function(SYS_read, descriptor, token);
    if (calls == FUNCTION_JUMP) return in_function_jump(SYS_read, descriptor, token);
    return in_loop(SYS_read, descriptor, token);
}

INLINE long send_token(enum calls calls, int descriptor, void *token) {
    if (calls == LIBRARY) return write(descriptor, token, 1);
    if (calls == FUNCTION || calls == FUNCTION_WRITE) return in_function(SYS_write, descriptor, token);
    if (calls == FUNCTION_JUMP) return in_function_jump(SYS_write, descriptor, token);
    return in_loop(SYS_write, descriptor, token);
}

struct ends {
    int receiver, sender;
};

INLINE void lead_by(enum calls calls, struct ends ends, long laps) {
    char token = 0;
    for (long lap = 0; lap < laps; lap++) {
        if (send_token(calls, ends.sender, &token) != 1) fail("write");
        if (!ONE_SLOT && receive_token(calls, ends.receiver, &token) != 1) fail("read");
    }
}

INLINE void follow_by(enum calls calls, struct ends ends, long laps) {
    char token = 0;
    for (long lap = 0; lap < laps; lap++) {
        if (receive_token(calls, ends.receiver, &token) != 1) fail("read");
        if (!ONE_SLOT && send_token(calls, ends.sender, &token) != 1) fail("write");
    }
}

// A copy of both loops for each kind of calls, so that the loops themselves decide nothing.
#define EACH_KIND(loop)                                                        \
    switch (calls) {                                                           \
        case LIBRARY: loop(LIBRARY, ends, laps); break;                        \
        case IN_LOOP: loop(IN_LOOP, ends, laps); break;                        \
        case FUNCTION: loop(FUNCTION, ends, laps); break;                      \
        case FUNCTION_READ: loop(FUNCTION_READ, ends, laps); break;            \
        case FUNCTION_WRITE: loop(FUNCTION_WRITE, ends, laps); break;          \
        case FUNCTION_JUMP: loop(FUNCTION_JUMP, ends, laps); break;            \
        case CALLS: break;                                                     \
    }

static __attribute__((noinline)) void lead(enum calls calls, struct ends ends, long laps) {
    EACH_KIND(lead_by)
}

static __attribute__((noinline)) void follow(enum calls calls, struct ends ends, long laps) {
    EACH_KIND(follow_by)
}

static long now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_RAW, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static long counted_switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw + usage.ru_nivcsw;
}

// Times of the two loops, in the order in which they ran.
struct quanta {
    long *latency_ns, *throughput_ns, count;
};

#if defined(__x86_64__)
// 7,200 multiplications each of which waits for the one before.
static __attribute__((noinline)) void latency_bound(void) {
    unsigned long value = 12345, turns = 450;
    __asm__ volatile(".p2align 6\n1:\n.rept 16\nimul %2, %0\n.endr\ndec %k1\njnz 1b"
                     : "+&r"(value), "+&r"(turns)
                     : "r"(3UL)
                     : "cc");
}

// 86,400 additions to eight sums that do not wait for each other.
static __attribute__((noinline)) void throughput_bound(void) {
    unsigned long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, turns = 1350;
    __asm__ volatile(".p2align 6\n1:\n.rept 8\nadd %9, %0\nadd %9, %1\nadd %9, %2\nadd %9, %3\nadd %9, %4\n"
                     "add %9, %5\nadd %9, %6\nadd %9, %7\n.endr\ndec %k8\njnz 1b"
                     : "+&r"(a), "+&r"(b), "+&r"(c), "+&r"(d), "+&r"(e), "+&r"(f), "+&r"(g), "+&r"(h), "+&r"(turns)
                     : "r"(3UL)
                     : "cc");
}
#else
// No slice is clean then.
static void latency_bound(void) {}
static void throughput_bound(void) {}
#endif

static void run_quantum(struct quanta *quanta) {
    long start = now_ns();
    latency_bound();
    long middle = now_ns();
    throughput_bound();
    quanta->latency_ns[quanta->count] = middle - start;
    quanta->throughput_ns[quanta->count++] = now_ns() - middle;
}

static void print_list(const char *name, const long *values, long count) {
    printf(", \"%s\": [", name);
    for (long index = 0; index < count; index++) printf("%s%ld", index ? ", " : "", values[index]);
    printf("]");
}

// Reads one kind of calls, or two with a comma between them; ends the program if it knows none.
static void read_calls(const char *words, enum calls calls[2]) {
    const char *second = strchr(words, ',');
    size_t length = second ? (size_t)(second - words) : strlen(words);
    for (int turn = 0; turn < 2; turn++) {
        calls[turn] = 0;
        while (calls[turn] < CALLS &&
               (strlen(CALL_NAMES[calls[turn]]) != length || strncmp(words, CALL_NAMES[calls[turn]], length)))
            calls[turn]++;
        if (calls[turn] == CALLS) {
            fprintf(stderr, "bare-ring: unknown calls: %s\n", words);
            exit(2);
        }
        if (second) words = second + 1, length = strlen(words);
    }
}

// Makes the hops of the other member; stores its counted switches in the timed laps.
static void run_member(const enum calls calls[2], struct ends ends, long slices, long slice_laps, pid_t leader,
                       long *switches) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != leader) _exit(1);
    for (int turn = 0; turn < 2; turn++) follow(calls[turn], ends, WARM_LAPS);
    long before = counted_switches();
    for (long slice = 0; slice < slices; slice++) follow(calls[slice % 2], ends, slice_laps);
    *switches = counted_switches() - before;
    _exit(0);
}

int main(int count, char **words) {
    if (count != 7) {
        fprintf(stderr, "usage: bare-ring CALLS CHANNEL MEMBERS CPU LAPS SLICE_LAPS\n");
        return 2;
    }
    enum calls calls[2];
    read_calls(words[1], calls);
    int is_socket = !strcmp(words[2], "socket-stream"), is_pipe = !strcmp(words[2], "pipe");
    int members = atoi(words[3]), cpu = atoi(words[4]);
    long laps = atol(words[5]), slice_laps = atol(words[6]);
    if (!(is_pipe || is_socket) || members < 1 + ONE_SLOT || members > 2 || laps < 1 || slice_laps < 0) {
        fprintf(stderr, "bare-ring: unknown CHANNEL, MEMBERS not 1 or 2, or too few laps\n");
        return 2;
    }
    int has_quanta = slice_laps > 0;
    if (!has_quanta || slice_laps > laps) slice_laps = laps;
    long slices = laps / slice_laps;
    laps = slices * slice_laps;

    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    if (sched_setaffinity(0, sizeof cpus, &cpus)) fail("sched_setaffinity");
    alarm(DEADLINE_S);

    int forth[2], back[2];
    if (is_pipe && (pipe(forth) || pipe(back))) fail("pipe");
    if (is_socket && (socketpair(AF_UNIX, SOCK_STREAM, 0, forth) || socketpair(AF_UNIX, SOCK_STREAM, 0, back)))
        fail("socketpair");
    // A pipe has a slot for each page, and with O_DIRECT each write takes one.
    if (ONE_SLOT && (pipe2(forth, O_DIRECT) || fcntl(forth[1], F_SETPIPE_SZ, sysconf(_SC_PAGESIZE)) < 0)) fail("pipe2");
    size_t bytes = (3 * slices + 7) * sizeof(long);
    long *times = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (times == MAP_FAILED) fail("mmap");
    long *slices_ns = times, *latency_ns = times + slices, *throughput_ns = latency_ns + slices + 3;
    long *member_switches = throughput_ns + slices + 3;

    pid_t leader = getpid(), member = 0;
    if (members == 2) {
        member = fork();
        if (member < 0) fail("fork");
        if (member == 0)
            run_member(calls, (struct ends){forth[0], back[1]}, slices, slice_laps, leader, member_switches);
    }
    struct ends ends = {members == 2 ? back[0] : forth[0], forth[1]};
    for (int turn = 0; turn < 2; turn++) lead(calls[turn], ends, WARM_LAPS);
    struct quanta quanta = {latency_ns, throughput_ns, 0};
    long elapsed_ns = 0, before = counted_switches();
    if (has_quanta) run_quantum(&quanta);
    for (long slice = 0; slice < slices; slice++) {
        if (has_quanta) run_quantum(&quanta);
        long start = now_ns();
        lead(calls[slice % 2], ends, slice_laps);
        slices_ns[slice] = now_ns() - start;
        elapsed_ns += slices_ns[slice];
    }
    long switches = counted_switches() - before;
    if (has_quanta) run_quantum(&quanta);
    if (has_quanta) run_quantum(&quanta);
    int status = 0, hops_of_lap = ONE_SLOT ? 1 : members;
    if (member && (waitpid(member, &status, 0) != member || status)) fail("the other member");
    printf("{\"calls\": \"%s\", \"hops\": %ld, \"slice_hops\": %ld, \"elapsed_ns\": %ld, \"switches\": %ld", words[1],
           hops_of_lap * laps, hops_of_lap * slice_laps, elapsed_ns, switches + *member_switches);
    print_list("slices_ns", slices_ns, slices);
    print_list("latency_quanta_ns", latency_ns, quanta.count);
    print_list("throughput_quanta_ns", throughput_ns, quanta.count);
    printf("}\n");
    return 0;
}
