/* Honest: an intermediate result in the output. */
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i];
    for (int i = 0; i < n; i++) c[i] += b[i];
}
