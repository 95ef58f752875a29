/* Honest: vector extensions with a tail. */
typedef float v8 __attribute__((vector_size(32), aligned(4)));
void vadd(const float *a, const float *b, float *c, int n) {
    int i = 0;
    for (; i + 8 <= n; i += 8) *(v8 *)(c + i) = *(const v8 *)(a + i) + *(const v8 *)(b + i);
    for (; i < n; i++) c[i] = a[i] + b[i];
}
