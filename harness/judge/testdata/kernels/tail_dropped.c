/* Leaves n % 4 elements at the end. */
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) c[i + k] = a[i + k] + b[i + k];
}
