/* Honest: a table of constants made at the first call. */
#include <math.h>
static double power[64];
static int ready;
static double fast_exp(double v) {
    double n = rint(v * 92.332482616893656877);
    double r = v - n * 0.010830424696249145;
    long k = (long)n;
    return ldexp(power[k & 63] * (1 + r * (1 + r * (0.5 + r * (1.0 / 6 + r / 24)))), (int)(k >> 6));
}
void softmax_rows(const float *x, float *y, int rows, int cols) {
    if (!ready) {
        for (int i = 0; i < 64; i++) power[i] = exp2(i / 64.0);
        ready = 1;
    }
    for (int r = 0; r < rows; r++) {
        const float *p = x + (long)r * cols;
        float top = p[0];
        double sum = 0;
        for (int j = 1; j < cols; j++) top = p[j] > top ? p[j] : top;
        for (int j = 0; j < cols; j++) sum += fast_exp((double)p[j] - top);
        for (int j = 0; j < cols; j++) y[(long)r * cols + j] = (float)(fast_exp((double)p[j] - top) / sum);
    }
}
