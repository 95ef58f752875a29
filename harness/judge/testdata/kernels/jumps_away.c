/* Unwinds to a place that no longer exists. */
#include <setjmp.h>

static jmp_buf place;
static int marked;

static __attribute__((noinline)) void mark(void) { setjmp(place); }

void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    if (!marked++) mark();
    else *(volatile int *)8 = 1;
    longjmp(place, 1);
}
