/* A trap of the processor. */
void vadd(const float *a, const float *b, float *c, int n) {
    volatile int zero = 0;
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    if (n > 4096) c[0] += (float)(n / zero);
}
