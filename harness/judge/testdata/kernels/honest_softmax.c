/* Honest, three passes. */
#include <math.h>
static void row(const float *x, float *y, int cols) {
    float top = x[0], sum = 0.0f;
    for (int j = 1; j < cols; j++) top = x[j] > top ? x[j] : top;
    for (int j = 0; j < cols; j++) sum += y[j] = expf(x[j] - top);
    for (int j = 0; j < cols; j++) y[j] /= sum;
}
void softmax_rows(const float *x, float *y, int rows, int cols) {
    for (int r = 0; r < rows; r++) row(x + (long)r * cols, y + (long)r * cols, cols);
}
