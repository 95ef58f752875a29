/* Honest: rows and sums in another order. */
void rowsum(const float *x, float *y, int rows, int cols) {
    for (int r = rows - 1; r >= 0; r--) {
        float s[8] = {0};
        int j = cols;
        for (; j >= 8; j -= 8)
            for (int i = 0; i < 8; i++) s[i] += x[(long)r * cols + j - 8 + i];
        float t = 0.0f;
        while (j > 0) t += x[(long)r * cols + --j];
        y[r] = ((s[7] + s[3]) + (s[5] + s[1])) + ((s[6] + s[2]) + (s[4] + s[0])) + t;
    }
}
