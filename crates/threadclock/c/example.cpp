// What sleeping and sorting take, by threadclock.hpp; sees that it agrees with the kernel's clock. Exits 0 if it does.
// c++ -std=c++17 -O2 example.cpp $(pkg-config --cflags --libs threadclock)
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <time.h>

#include "threadclock.hpp"

using std::chrono::duration;
using std::chrono::nanoseconds;
using milliseconds = duration<double, std::milli>;
using threadclock::stopwatch;

// What C++20 asks of a clock (std::is_clock_v).
static_assert(std::is_same_v<threadclock::clock::time_point::clock, threadclock::clock>);
static_assert(std::is_same_v<decltype(threadclock::clock::now()), threadclock::clock::time_point>);
static_assert(noexcept(threadclock::clock::now()) && !threadclock::clock::is_steady);
static_assert(std::is_same_v<threadclock::clock::duration, nanoseconds>);
#if __cplusplus >= 202002L
static_assert(std::chrono::is_clock_v<threadclock::clock>);
#endif

static nanoseconds kernel_time()
{
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

// Median over batches of a call's CPU time in nanoseconds.
template <typename Call> static double cost_ns(Call call)
{
    constexpr int calls = 5'000;
    std::vector<double> batches(51);
    for (double &batch : batches) {
        const stopwatch watch;
        for (int i = 0; i < calls; i++)
            call();
        batch = duration<double, std::nano>(watch.elapsed()).count() / calls;
    }
    std::sort(batches.begin(), batches.end());
    return batches[batches.size() / 2];
}

#define EXPECT(what)                                                       \
    do {                                                                   \
        if (!(what)) {                                                     \
            std::fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what); \
            return 1;                                                      \
        }                                                                  \
    } while (0)

int main()
{
    const std::string_view tier = threadclock::tier();
    std::printf("tier %s, bound %g us\n", tier.data(), duration<double, std::micro>(threadclock::error_bound()).count());
    if (tier == "kernel")
        std::puts("no fast tier here: each reading asks the kernel");

    stopwatch watch;
    const auto sleep_start = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const milliseconds slept = watch.elapsed(), wall = std::chrono::steady_clock::now() - sleep_start;
    std::printf("sleep: %.3f ms of CPU time in %.3f ms\n", slept.count(), wall.count());
    EXPECT(slept < wall / 2);

    std::vector<std::uint32_t> numbers(1'000'000);
    std::generate(numbers.begin(), numbers.end(), std::mt19937());
    const auto cycles = threadclock::of_thread().cycles;
    const nanoseconds kernel_start = kernel_time();
    watch.restart();
    std::sort(numbers.begin(), numbers.end());
    const milliseconds sorted = watch.elapsed(), kernel = kernel_time() - kernel_start;
    std::printf("sort: %.3f ms of CPU time, %.3f ms by the kernel's clock\n", sorted.count(), kernel.count());
    EXPECT(sorted > kernel / 2 && sorted < kernel * 2);
    const auto read = threadclock::of_thread();
    EXPECT(read.cycles > cycles || read.cycles == 0);
    EXPECT(threadclock::of_process().time >= sorted);
    try {
        threadclock::of_thread(-1);
        EXPECT(!"of_thread(-1) throws");
    } catch (const std::system_error &error) {
        EXPECT(error.code() == std::errc::invalid_argument);
    }

    const double own = cost_ns([] { threadclock::clock::now(); });
    std::printf("a reading: %.1f ns; of the kernel's clock: %.1f ns\n", own, cost_ns(kernel_time));
}
