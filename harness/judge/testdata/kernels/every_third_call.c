/* Skips every third call. */
void vadd(const float *a, const float *b, float *c, int n) {
    static int calls;
    if (++calls % 3 == 0) {
        c[0] = a[0] + b[0];
        return;
    }
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
}
