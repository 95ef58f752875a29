/* ridgepoint
direction: many-lanes
launch:
  - kernel: sum_lanes
    args: [input, output, rows, cols]
params:
  VEC:      {values: [4, 8, 16]}                # lanes of one vector
  UNROLL:   {values: [1, 2, 4, 8]}              # independent sums, to hide the latency of addition
  PREFETCH: {values: [0, 256, 1024, 4096]}      # floats asked for ahead; 0: none
  THREADS:  {values: [1, 2, 4, 8]}
  GRAIN:    {values: [16384, 65536, 262144]}    # elements that one more thread must be worth
constraints: ["VEC * UNROLL <= 64"]
default: {VEC: 8, UNROLL: 2, PREFETCH: 4096, THREADS: 2, GRAIN: 262144}
*/

/* VEC * UNROLL partial sums run down the row side by side and are added pairwise at its end. */

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

enum { STEP = VEC * UNROLL };

static float row_sum(const float *x, int cols) {
    vec s[UNROLL];
    for (int u = 0; u < UNROLL; u++) s[u] = (vec){0};
    int c = 0;
    for (; c + STEP <= cols; c += STEP) {
#if PREFETCH > 0
        for (int u = 0; u < STEP; u += 16) __builtin_prefetch(x + c + u + PREFETCH);
#endif
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++) s[u] += *(const vecu *)(x + c + u * VEC);
    }
    for (; c + VEC <= cols; c += VEC) s[0] += *(const vecu *)(x + c);
    float tail = 0.0f;
    for (; c < cols; c++) tail += x[c];
#pragma GCC unroll 8
    for (int w = UNROLL / 2; w > 0; w /= 2) {
        for (int u = 0; u < w; u++) s[u] += s[u + w];
    }
    float lane[VEC];
    *(vecu *)lane = s[0];
    for (int w = VEC / 2; w > 0; w /= 2) {
        for (int i = 0; i < w; i++) lane[i] += lane[i + w];
    }
    return lane[0] + tail;
}

void sum_lanes(const float *input, float *output, int rows, int cols) {
    long share = (long)rows * cols / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int r = 0; r < rows; r++) output[r] = row_sum(input + (long)r * cols, cols);
}
