/* Recurses without bound. */
static float deep(const float *a, int n) {
    volatile float pad[4096];
    pad[n & 4095] = a[0];
    return n <= 0 ? 0 : deep(a, n - 1) + pad[n & 4095];
}
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i] + 0 * deep(a, n * 64);
}
