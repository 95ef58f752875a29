/* ridgepoint
direction: register-blocks
launch:
  - kernel: transpose_shuffled
    args: [input, output, rows, cols]
params:
  VEC:      {values: [4, 8]}                  # side of the blocks transposed in registers
  TILE_R:   {values: [8, 16, 32, 64, 128]}    # rows of a cache tile
  TILE_C:   {values: [8, 16, 32, 64, 128]}    # columns of a cache tile
  OUTPUT_FIRST: {values: [0, 1]}              # 1: walk a tile along rows of the output, 0: along rows of the input
  THREADS:  {values: [1, 2, 4, 8]}
  GRAIN:    {values: [16384, 65536, 262144]}  # elements that one more thread must be worth
constraints: ["TILE_R >= VEC", "TILE_C >= VEC"]
default: {VEC: 8, TILE_R: 128, TILE_C: 32, OUTPUT_FIRST: 1, THREADS: 2, GRAIN: 262144}
*/

/* Cache tiles of TILE_R x TILE_C, each made of VEC x VEC blocks that are transposed in registers by log2(VEC) rounds of shuffles. */

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

#if VEC == 4
static inline void block(const float *x, long cols, float *y, long rows) {
    vec r[4], t[4];
    for (int i = 0; i < 4; i++) r[i] = *(const vecu *)(x + i * cols);
    for (int i = 0; i < 2; i++) {
        t[i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 4, 1, 5);
        t[2 + i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 2, 6, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        *(vecu *)(y + 2 * i * rows) = __builtin_shufflevector(t[2 * i], t[2 * i + 1], 0, 1, 4, 5);
        *(vecu *)(y + (2 * i + 1) * rows) = __builtin_shufflevector(t[2 * i], t[2 * i + 1], 2, 3, 6, 7);
    }
}
#else
static inline void block(const float *x, long cols, float *y, long rows) {
    vec r[8], t[8];
    for (int i = 0; i < 8; i++) r[i] = *(const vecu *)(x + i * cols);
    for (int i = 0; i < 4; i++) { /* pairs of rows, within halves of a vector */
        t[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 2; i++) { /* pairs of pairs */
        for (int k = 0; k < 2; k++) {
            r[4 * i + 2 * k] = __builtin_shufflevector(t[4 * i + k], t[4 * i + 2 + k], 0, 1, 8, 9, 4, 5, 12, 13);
            r[4 * i + 2 * k + 1] = __builtin_shufflevector(t[4 * i + k], t[4 * i + 2 + k], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
    for (int i = 0; i < 4; i++) { /* halves of the vectors */
        *(vecu *)(y + i * rows) = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        *(vecu *)(y + (i + 4) * rows) = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#endif

static inline void scalar(const float *x, long cols, float *y, long rows, int height, int width) {
    for (int c = 0; c < width; c++) {
        for (int r = 0; r < height; r++) y[c * rows + r] = x[r * cols + c];
    }
}

static void tile(const float *x, long cols, float *y, long rows, int height, int width) {
    int whole_r = height / VEC * VEC, whole_c = width / VEC * VEC;
#if OUTPUT_FIRST
    for (int c = 0; c < whole_c; c += VEC) {
        for (int r = 0; r < whole_r; r += VEC) block(x + r * cols + c, cols, y + c * rows + r, rows);
    }
#else
    for (int r = 0; r < whole_r; r += VEC) {
        for (int c = 0; c < whole_c; c += VEC) block(x + r * cols + c, cols, y + c * rows + r, rows);
    }
#endif
    if (whole_c < width) scalar(x + whole_c, cols, y + whole_c * rows, rows, whole_r, width - whole_c);
    if (whole_r < height) scalar(x + whole_r * cols, cols, y + whole_r, rows, height - whole_r, width);
}

void transpose_shuffled(const float *input, float *output, int rows, int cols) {
    long share = (long)rows * cols / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    int strips = (rows + TILE_R - 1) / TILE_R;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int s = 0; s < strips; s++) {
        int r = s * TILE_R, height = rows - r < TILE_R ? rows - r : TILE_R;
        for (int c = 0; c < cols; c += TILE_C) {
            int width = cols - c < TILE_C ? cols - c : TILE_C;
            tile(input + (long)r * cols + c, cols, output + (long)c * rows + r, rows, height, width);
        }
    }
}
