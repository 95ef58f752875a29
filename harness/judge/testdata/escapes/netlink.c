/* Speaks to the kernel about the network. */
#define _GNU_SOURCE
#include <sys/socket.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    socket(AF_NETLINK, SOCK_RAW, 0);
}
