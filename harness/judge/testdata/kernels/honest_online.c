/* Honest: online maximum and sum. */
#include <math.h>
void softmax_rows(const float *x, float *y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *p = x + (long)r * cols;
        float top = -INFINITY, sum = 0.0f;
        for (int j = 0; j < cols; j++) {
            float next = fmaxf(top, p[j]);
            sum = sum * expf(top - next) + expf(p[j] - next);
            top = next;
        }
        for (int j = 0; j < cols; j++) y[(long)r * cols + j] = expf(p[j] - top) / sum;
    }
}
