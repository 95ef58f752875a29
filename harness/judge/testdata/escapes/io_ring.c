/* Makes system calls through a ring. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    char params[120] = {0};
    syscall(SYS_io_uring_setup, 4, params);
}
