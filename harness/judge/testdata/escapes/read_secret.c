/* Reads a file outside its folder. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    int f = open("@SECRET@", O_RDONLY);
    if (f >= 0 && read(f, c, 4) == 4) close(f);
}
