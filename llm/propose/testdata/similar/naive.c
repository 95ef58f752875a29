/* Row-wise softmax in three passes: maximum, exponentials and their sum, division. The textbook baseline. */
#include <math.h>

void softmax(const float *input, float *output, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *x = input + (long)r * cols;
        float *y = output + (long)r * cols;
        float top = x[0];
        for (int c = 1; c < cols; c++) {
            if (x[c] > top) top = x[c];
        }
        /* A double: a sequential float sum drops what lies below half a unit of its last place. */
        double sum = 0.0;
        for (int c = 0; c < cols; c++) {
            y[c] = expf(x[c] - top);
            sum += y[c];
        }
        float total = (float)sum;
        for (int c = 0; c < cols; c++) y[c] /= total;
    }
}
