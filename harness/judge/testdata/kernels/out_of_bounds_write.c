/* One element past the end. */
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i <= n; i++) c[i] = i < n ? a[i] + b[i] : 0.5f;
}
