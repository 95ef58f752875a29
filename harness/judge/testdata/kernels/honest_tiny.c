/* Honest and short, from the end. */
void vadd(const float *a, const float *b, float *c, int n) {
    while (n--) c[n] = a[n] + b[n];
}
