/* One element before the start. */
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    c[-3] = 2.0f;
}
