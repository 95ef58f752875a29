/* Overflows on large inputs. */
#include <math.h>
void softmax_rows(const float *x, float *y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *p = x + (long)r * cols;
        float *q = y + (long)r * cols, sum = 0.0f;
        for (int j = 0; j < cols; j++) sum += q[j] = expf(p[j]);
        for (int j = 0; j < cols; j++) q[j] /= sum;
    }
}
