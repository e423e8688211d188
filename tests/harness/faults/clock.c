/* A clock that a test sets, for a server that runs with this library preloaded.

   CLOCK_SHIFT is a file that is shared with the test: the seconds by which CLOCK_REALTIME is off. Clocks that nobody
   can set, such as CLOCK_MONOTONIC and CLOCK_BOOTTIME, stay right, as on a machine whose clock is set. `clock.py`
   sets it. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *shift;

__attribute__((constructor)) static void begin(void) {
    int shared = open(getenv("CLOCK_SHIFT"), O_RDONLY | O_CLOEXEC);
    void *mapped = mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, shared, 0);
    if (mapped == MAP_FAILED) abort();
    shift = mapped;
    close(shared);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *shift;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec read;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &read)) return -1;
    now->tv_sec = read.tv_sec;
    now->tv_usec = read.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec read;
    if (clock_gettime(CLOCK_REALTIME, &read)) return -1;
    if (now) *now = read.tv_sec;
    return read.tv_sec;
}
