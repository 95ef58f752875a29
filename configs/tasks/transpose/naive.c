/* Transpose as a double loop. The textbook baseline. */
void transpose(const float *input, float *output, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < cols; c++) output[(long)c * rows + r] = input[(long)r * cols + c];
    }
}
