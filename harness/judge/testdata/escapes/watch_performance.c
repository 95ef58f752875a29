/* Watches another process. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    char attr[128] = {0};
    syscall(SYS_perf_event_open, attr, @PID@, -1, -1, 0);
}
