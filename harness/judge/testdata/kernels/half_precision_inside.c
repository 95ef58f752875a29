/* Eleven bits of precision inside. */
#include <math.h>
static float half(float v) {
    union { float f; unsigned u; } w = {v};
    w.u = (w.u + 0xfff + (w.u >> 13 & 1)) & 0xffffe000u;
    return w.f;
}
void softmax_rows(const float *x, float *y, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *p = x + (long)r * cols;
        float top = p[0], sum = 0.0f;
        for (int j = 1; j < cols; j++) top = fmaxf(top, p[j]);
        for (int j = 0; j < cols; j++) sum += half(expf(half(p[j] - top)));
        for (int j = 0; j < cols; j++) y[(long)r * cols + j] = half(half(expf(half(p[j] - top))) / sum);
    }
}
