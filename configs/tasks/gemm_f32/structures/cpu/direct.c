/* ridgepoint
direction: register-tile
launch:
  - kernel: gemm_direct
    args: [a, b, c, m, n, k]
params:
  VEC:     {values: [4, 8, 16]}              # lanes of one vector
  NV:      {values: [1, 2, 3, 4]}            # vectors of a row of the register tile
  MR:      {values: [2, 4, 6, 8]}            # rows of the register tile
  KC:      {values: [32, 64, 128, 256]}      # depth of the strip of b that is copied next to the tile
  THREADS: {values: [1, 2, 4, 8]}
  GRAIN:   {values: [524288, 2097152, 8388608]}  # multiply-adds that one more thread must be worth
constraints: ["MR * NV <= 16"]
default: {VEC: 8, NV: 2, MR: 6, KC: 128, THREADS: 2, GRAIN: 8388608}
*/

/* Every thread owns strips of VEC*NV columns: it copies KC rows of a strip of b onto its stack, where they stay in the nearest
 * cache, and runs down the rows of a, which is read where it lies. No workspace and no meeting of threads but the last. */

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

enum { NR = VEC * NV };

static void copy_strip(float *strip, const float *b, long n, int depth, int width) {
    for (int p = 0; p < depth; p++) {
        if (width == NR) {
            for (int j = 0; j < NV; j++) *(vecu *)(strip + p * NR + j * VEC) = *(const vecu *)(b + p * n + j * VEC);
        } else {
            for (int j = 0; j < NR; j++) strip[p * NR + j] = j < width ? b[p * n + j] : 0.0f;
        }
    }
}

/* rows is MR or 1, a constant at both calls. */
static inline __attribute__((always_inline)) void tile(int rows, int depth, const float *restrict a, long k,
                                                       const float *restrict strip, float *restrict c, long n, int width,
                                                       int first) {
    vec acc[MR][NV];
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < NV; j++) acc[i][j] = (vec){0};
    }
    for (int p = 0; p < depth; p++) {
        vec row[NV];
        for (int j = 0; j < NV; j++) row[j] = *(const vecu *)(strip + p * NR + j * VEC);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            float x = a[i * k + p];
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++) acc[i][j] += x * row[j];
        }
    }
    float edge[NR];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        if (width == NR) {
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++) {
                vecu *at = (vecu *)(c + i * n + j * VEC);
                *at = first ? acc[i][j] : acc[i][j] + *at;
            }
        } else {
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++) *(vecu *)(edge + j * VEC) = acc[i][j];
            for (int j = 0; j < width; j++) c[i * n + j] = first ? edge[j] : c[i * n + j] + edge[j];
        }
    }
}

void gemm_direct(const float *a, const float *b, float *c, int m, int n, int k) {
    long share = (long)m * n * k / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int j = 0; j < n; j += NR) {
        float strip[KC * NR] __attribute__((aligned(64)));
        int width = n - j < NR ? n - j : NR;
        for (int p = 0; p < k; p += KC) {
            int depth = k - p < KC ? k - p : KC, i = 0;
            copy_strip(strip, b + (long)p * n + j, n, depth, width);
            for (; i + MR <= m; i += MR) tile(MR, depth, a + (long)i * k + p, k, strip, c + (long)i * n + j, n, width, p == 0);
            for (; i < m; i++) tile(1, depth, a + (long)i * k + p, k, strip, c + (long)i * n + j, n, width, p == 0);
        }
    }
}
