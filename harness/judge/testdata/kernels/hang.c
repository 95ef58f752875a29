/* Spins for ever at odd sizes. */
void vadd(const float *a, const float *b, float *c, int n) {
    volatile int stay = n & 1;
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    while (stay) { }
}
