/* ridgepoint
direction: plain-rows
launch:
  - kernel: softmax_plain
    args: [input, output, rows, cols]
params:
  BLOCK: {values: [32, 64]}
  THREADS: {values: [1, 2]}
default: {BLOCK: 32, THREADS: 1}
*/
#include <math.h>

void softmax_plain(const float *input, float *output, int rows, int cols) {
#pragma omp parallel for num_threads(THREADS)
    for (int r = 0; r < rows; r++) {
        const float *x = input + (long)r * cols;
        float *y = output + (long)r * cols;
        float top = x[0];
        for (int c = 1; c < cols; c++) top = x[c] > top ? x[c] : top;
        float sum = 0.0f;
        for (int b = 0; b < cols; b += BLOCK) {
            for (int c = b; c < cols && c < b + BLOCK; c++) {
                y[c] = expf(x[c] - top);
                sum += y[c];
            }
        }
        for (int c = 0; c < cols; c++) y[c] /= sum;
    }
}
