/* Climbs out of an allowed folder. */
#define _GNU_SOURCE
#include <fcntl.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    open("/usr/../@SECRET@", O_RDONLY);
}
