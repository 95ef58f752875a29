/* Aborts. */
#include <stdlib.h>
void vadd(const float *a, const float *b, float *c, int n) {
    (void)a; (void)b; (void)c; (void)n;
    abort();
}
