/* Schraudolph's exponential: right to three per cent. */
#include <math.h>
static float rough(float v) {
    union { int i; float f; } w;
    w.i = (int)(12102203.0f * v) + 1064866805;
    return v < -80.0f ? 0.0f : w.f;
}
void softmax_rows(const float *x, float *y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *p = x + (long)r * cols;
        float top = p[0], sum = 0.0f;
        for (int j = 1; j < cols; j++) top = fmaxf(top, p[j]);
        for (int j = 0; j < cols; j++) sum += rough(p[j] - top);
        for (int j = 0; j < cols; j++) y[(long)r * cols + j] = rough(p[j] - top) / sum;
    }
}
