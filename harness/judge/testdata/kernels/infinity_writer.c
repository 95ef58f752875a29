/* One infinity among right values. */
#include <math.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    if (n > 2) c[n - 2] = -INFINITY;
}
