/* Prints without end. */
#include <stdio.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    for (int i = 0; i < 400000; i++) printf("iteration %d of a very talkative kernel that likes to print\n", i);
    fflush(stdout);
}
