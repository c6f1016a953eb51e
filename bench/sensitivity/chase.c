/* chase BYTES HOPS: follows a random cycle through BYTES, one cache line a hop, and prints ns a hop. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

struct line {
    struct line *next;
    char rest[56];
};

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

int main(int argc, char **argv)
{
    size_t lines = argc > 2 ? strtoul(argv[1], 0, 10) / sizeof(struct line) : 0;
    if (lines < 2) {
        fprintf(stderr, "usage: chase BYTES HOPS\n");
        return 2;
    }
    size_t bytes = (lines * sizeof(struct line) + (2 << 20) - 1) >> 21 << 21;
    struct line *all = aligned_alloc(2 << 20, bytes);
    size_t *order = malloc(lines * sizeof *order);
    madvise(all, bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at < lines; at++)
        order[at] = at;
    for (size_t at = lines - 1; at > 0; at--) {
        size_t with = next_random() % (at + 1), kept = order[at];
        order[at] = order[with];
        order[with] = kept;
    }
    for (size_t at = 0; at < lines; at++)
        all[order[at]].next = &all[order[(at + 1) % lines]];
    free(order);
    struct line *of = all;
    for (size_t hop = 0; hop < 2 * lines; hop++)
        of = of->next;
    struct timespec start, end;
    long hops = atol(argv[2]);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    for (long hop = 0; hop < hops; hop++)
        of = of->next;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    printf("%.4f %d\n", ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / hops, of == all);
    return 0;
}
