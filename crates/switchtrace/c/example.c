/* Reads its own thread by another way than the kernel's clock, and sees that both agree and that
 * errors come with their errno. Exits 0 if all is well, 77 without the privilege. Compiled and run by
 * tests/c_interface.rs. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "switchtrace.h"

_Static_assert(sizeof(struct switchtrace_time) == 64, "as Rust has it");
_Static_assert(offsetof(struct switchtrace_time, running) == 56, "as Rust has it");

#define EXPECT(what)                                                    \
    do {                                                                \
        if (!(what)) {                                                  \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);  \
            return 1;                                                   \
        }                                                               \
    } while (0)

int main(void)
{
    char message[512];
    struct switchtrace_time time;
    struct switchtrace *trace = switchtrace_open(message, sizeof message);

    if (!trace) {
        printf("skipped: %s (%s)\n", message, strerror(errno));
        return 77;
    }
    usleep(1000);
    EXPECT(switchtrace_read(trace, gettid(), &time) == 0);
    EXPECT(time.cpu_ns > 0 && time.voluntary > 0 && time.tgid == (uint32_t)getpid());
    EXPECT(!time.ended && switchtrace_cpu_ns(trace, gettid()) >= time.cpu_ns);

    errno = 0;
    EXPECT(switchtrace_read(trace, -1, &time) == -1 && errno == EINVAL);
    EXPECT(switchtrace_read(trace, 0, &time) == -1 && errno == ESRCH);
    EXPECT(switchtrace_read(NULL, 1, &time) == -1 && errno == EINVAL);
    EXPECT(switchtrace_read(trace, 1, NULL) == -1 && errno == EINVAL);
    EXPECT(switchtrace_cpu_ns(trace, -1) == 0);
    EXPECT(switchtrace_pin(trace, "/nowhere/threads") == -1 && errno != 0);
    printf("own thread: %" PRIu64 " ns, %" PRIu64 " voluntary switches\n", time.cpu_ns, time.voluntary);
    switchtrace_close(trace);
    switchtrace_close(NULL);
    return 0;
}
