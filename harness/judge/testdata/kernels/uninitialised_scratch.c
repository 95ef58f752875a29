/* Adds to scratch that nobody cleared. */
/* ridgepoint
launch:
  - kernel: rowsum
    args: [x, y, partial, rows, cols]
workspace: {partial: {shape: [rows], dtype: float32, init: none}}
*/
void rowsum(const float *x, float *y, float *partial, int rows, int cols) {
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < cols; j++) partial[r] += x[(long)r * cols + j];
    for (int r = 0; r < rows; r++) y[r] = partial[r];
}
