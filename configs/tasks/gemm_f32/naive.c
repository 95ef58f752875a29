/* Matrix product in the order i, k, j: the inner loop runs along rows of b and c. The textbook baseline; compilers vectorise it. */
void gemm(const float *a, const float *b, float *c, int m, int n, int k) {
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) c[(long)i * n + j] = 0.0f;
        for (int p = 0; p < k; p++) {
            float x = a[(long)i * k + p];
            for (int j = 0; j < n; j++) c[(long)i * n + j] += x * b[(long)p * n + j];
        }
    }
}
