/* ridgepoint
direction: several-rows
launch:
  - kernel: sum_rows
    args: [input, output, rows, cols]
params:
  VEC:     {values: [4, 8, 16]}               # lanes of one vector
  ROWS:    {values: [1, 2, 4, 8]}             # rows summed side by side: as many streams from memory
  UNROLL:  {values: [1, 2, 4]}                # independent sums a row
  THREADS: {values: [1, 2, 4, 8]}
  GRAIN:   {values: [16384, 65536, 262144]}   # elements that one more thread must be worth
constraints: ["ROWS * UNROLL <= 16", "VEC * UNROLL <= 64"]
default: {VEC: 8, ROWS: 4, UNROLL: 2, THREADS: 2, GRAIN: 262144}
*/

/* ROWS rows are read at once, so that several streams of memory are open and short rows still fill the pipeline. */

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

enum { STEP = VEC * UNROLL };

static inline float lane_sum(vec v) {
    float lane[VEC];
    *(vecu *)lane = v;
    for (int w = VEC / 2; w > 0; w /= 2) {
        for (int i = 0; i < w; i++) lane[i] += lane[i + w];
    }
    return lane[0];
}

static inline __attribute__((always_inline)) void group_sum(const float *x, float *out, int cols, int rows) {
    vec s[ROWS * UNROLL];
    for (int i = 0; i < rows * UNROLL; i++) s[i] = (vec){0};
    int c = 0;
    for (; c + STEP <= cols; c += STEP) {
        for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
            for (int u = 0; u < UNROLL; u++) s[r * UNROLL + u] += *(const vecu *)(x + (long)r * cols + c + u * VEC);
        }
    }
    for (int r = 0; r < rows; r++) {
        float tail = 0.0f;
        for (int k = c; k < cols; k++) tail += x[(long)r * cols + k];
        for (int u = 1; u < UNROLL; u++) s[r * UNROLL] += s[r * UNROLL + u];
        out[r] = lane_sum(s[r * UNROLL]) + tail;
    }
}

void sum_rows(const float *input, float *output, int rows, int cols) {
    long share = (long)rows * cols / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    int groups = rows / ROWS;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int g = 0; g < groups; g++) group_sum(input + (long)g * ROWS * cols, output + (long)g * ROWS, cols, ROWS);
    for (int r = groups * ROWS; r < rows; r++) group_sum(input + (long)r * cols, output + r, cols, 1);
}
