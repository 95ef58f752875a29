/* Row sums, left to right. The textbook baseline. */
void reduce_sum(const float *input, float *output, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        const float *x = input + (long)r * cols;
        float sum = 0.0f;
        for (int c = 0; c < cols; c++) sum += x[c];
        output[r] = sum;
    }
}
