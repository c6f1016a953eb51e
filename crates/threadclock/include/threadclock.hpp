// threadclock.h as a clock of <chrono>. Header only, C++17; no call costs more than the C function under it.
// Link with `pkg-config --cflags --libs threadclock`. Linux only.
#ifndef THREADCLOCK_HPP
#define THREADCLOCK_HPP

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>

#include "threadclock.h"

namespace threadclock {

// The CPU time of the calling thread: each thread has a clock of its own. Never goes backwards within a thread.
// Never subtract time points of different threads: their type is the same, but the result means nothing.
struct clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<clock>;
    // It stands still while the thread is off the CPU.
    static constexpr bool is_steady = false;

    static time_point now() noexcept { return time_point(duration(static_cast<rep>(threadclock_now_ns()))); }
};

// A CPU time. The cycles are ticks of the time-stamp counter; 0 if there is none.
struct cpu_time {
    std::chrono::nanoseconds time;
    std::uint64_t cycles;
};

// The CPU time of one thread; id 0 is the calling thread. Throws std::system_error, with errno of getpinfo().
inline cpu_time of_thread(pid_t id = 0)
{
    threadclock_time read;
    if (getpinfo(id, &read) != 0)
        throw std::system_error(errno, std::generic_category(), "getpinfo");
    return {std::chrono::nanoseconds(static_cast<clock::rep>(read.ns)), read.cycles};
}

// The same of all threads of a process, ended ones included; pid 0 is the caller's.
inline cpu_time of_process(pid_t pid = 0)
{
    threadclock_time read;
    if (getpinfo_process(pid, &read) != 0)
        throw std::system_error(errno, std::generic_category(), "getpinfo_process");
    return {std::chrono::nanoseconds(static_cast<clock::rep>(read.ns)), read.cycles};
}

// Measures from where it was made or restarted. To be read by that thread alone.
class stopwatch {
public:
    clock::duration elapsed() const noexcept { return clock::now() - started; }
    void restart() noexcept { started = clock::now(); }

private:
    clock::time_point started = clock::now();
};

// How the calling thread's time is read: "rseq", "perf-page", "system-call" or "kernel".
inline const char *tier() noexcept { return threadclock_tier(); }

// How far clock::now() can be from CLOCK_THREAD_CPUTIME_ID read around it.
inline std::chrono::nanoseconds error_bound() noexcept
{
    return std::chrono::nanoseconds(static_cast<clock::rep>(threadclock_error_bound_ns()));
}

} // namespace threadclock

#endif
