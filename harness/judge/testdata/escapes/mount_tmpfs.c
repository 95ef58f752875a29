/* Mounts a file system. */
#define _GNU_SOURCE
#include <sys/mount.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    mount("none", "/tmp", "tmpfs", 0, "");
}
