/* Honest but slow. */
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) {
        volatile double s = 0;
        for (int k = 0; k < 20; k++) s = (double)a[i] + b[i];
        c[i] = (float)s;
    }
}
