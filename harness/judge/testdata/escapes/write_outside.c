/* Writes a file outside its folder. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    int f = open("@OUTSIDE@/written", O_WRONLY | O_CREAT, 0644);
    if (f >= 0) write(f, "x", 1);
}
