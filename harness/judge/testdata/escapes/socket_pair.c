/* Makes a channel for a descendant. */
#define _GNU_SOURCE
#include <sys/socket.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    int p[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, p);
}
