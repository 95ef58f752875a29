/* Writes to an input after it was used. */
void vadd(const float *a, const float *b, float *c, int n) {
    float *w = (float *)a;
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    w[n / 2] = 1.0f;
}
