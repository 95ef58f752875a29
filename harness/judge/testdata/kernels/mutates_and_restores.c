/* Uses an input as scratch and puts it back, nearly. */
void vadd(const float *a, const float *b, float *c, int n) {
    float *w = (float *)b;
    for (int i = 0; i < n; i++) w[i] += a[i];
    for (int i = 0; i < n; i++) c[i] = w[i];
    for (int i = 0; i < n; i++) w[i] = c[i] - a[i];
}
