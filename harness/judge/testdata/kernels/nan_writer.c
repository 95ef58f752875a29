/* One NaN among right values. */
#include <math.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    c[n / 3] = NAN;
}
