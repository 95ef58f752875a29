/* Honest: scratch of its own, double precision. */
#include <math.h>
#include <stdlib.h>
void softmax_rows(const float *x, float *y, int rows, int cols) {
    double *e = malloc(sizeof(double) * cols);
    for (int r = 0; r < rows; r++) {
        const float *p = x + (long)r * cols;
        float top = p[0];
        double sum = 0;
        for (int j = 1; j < cols; j++) top = fmaxf(top, p[j]);
        for (int j = 0; j < cols; j++) sum += e[j] = exp((double)p[j] - top);
        for (int j = 0; j < cols; j++) y[(long)r * cols + j] = (float)(e[j] / sum);
    }
    free(e);
}
