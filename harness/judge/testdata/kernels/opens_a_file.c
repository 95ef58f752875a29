/* Looks at the host. */
#include <fcntl.h>
#include <unistd.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    int f = open("/etc/hostname", O_RDONLY);
    if (f >= 0) close(f);
}
