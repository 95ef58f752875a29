/* Kills by thread. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    syscall(SYS_tgkill, @PID@, @PID@, 9);
}
