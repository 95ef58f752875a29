/* ridgepoint
direction: packed-panels
launch:
  - kernel: gemm_packed
    args: [a, b, c, m, n, k, pack_a, pack_b]
workspace:
  pack_a: {shape: [THREADS, MC * KC], dtype: float32, init: none}
  pack_b: {shape: ["ceil_div(n, VEC * NV) * VEC * NV", KC], dtype: float32, init: none}
params:
  VEC:     {values: [4, 8, 16]}            # lanes of one vector
  NV:      {values: [1, 2, 3, 4]}          # vectors of a row of the register tile
  MR:      {values: [4, 6, 8, 12]}      # rows of the register tile
  KC:      {values: [128, 256, 512]}  # depth of a panel
  MC:      {values: [24, 48, 96]}     # rows of a that one thread packs at a time
  THREADS: {values: [1, 2, 4]}
  GRAIN:   {values: [524288, 2097152, 8388608]}  # multiply-adds that one more thread must be worth
constraints:
  - "MR * NV <= 24"
  - "MC % MR == 0"
default: {VEC: 8, NV: 2, MR: 6, KC: 256, MC: 48, THREADS: 2, GRAIN: 8388608}
*/

/* The scheme of Goto and van de Geijn (ACM TOMS 34(3), 2008): panels of b, KC deep and VEC*NV wide, and blocks of a, MC x KC, are
 * copied so that the innermost loop reads both straight through, and an MR x (VEC*NV) tile of c stays in registers for a whole
 * panel. Panels are filled up with zeros, so that the inner loop never sees an edge. */

#ifdef _OPENMP
#include <omp.h>
#endif

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

enum { NR = VEC * NV };

/* pack[p*NR + j] = b[p][j] for a panel of `depth` rows and at most NR columns. */
static void pack_b_panel(float *pack, const float *b, long n, int depth, int width) {
    if (width == NR) {
        for (int p = 0; p < depth; p++) {
            for (int j = 0; j < NV; j++) *(vecu *)(pack + p * NR + j * VEC) = *(const vecu *)(b + p * n + j * VEC);
        }
        return;
    }
    for (int p = 0; p < depth; p++) {
        for (int j = 0; j < NR; j++) pack[p * NR + j] = j < width ? b[p * n + j] : 0.0f;
    }
}

/* pack[p*MR + i] = a[i][p], MR rows after MR rows. */
static void pack_a_block(float *pack, const float *a, long k, int depth, int height) {
    for (int i0 = 0; i0 < height; i0 += MR, pack += MR * depth) {
        int rows = height - i0 < MR ? height - i0 : MR;
        for (int i = 0; i < rows; i++) {
            const float *row = a + (i0 + i) * k;
            for (int p = 0; p < depth; p++) pack[p * MR + i] = row[p];
        }
        for (int i = rows; i < MR; i++) {
            for (int p = 0; p < depth; p++) pack[p * MR + i] = 0.0f;
        }
    }
}

static inline void micro(int depth, const float *restrict pa, const float *restrict pb, vec acc[MR][NV]) {
    for (int p = 0; p < depth; p++, pa += MR, pb += NR) {
        vec row[NV];
        for (int j = 0; j < NV; j++) row[j] = *(const vecu *)(pb + j * VEC);
#pragma GCC unroll 12
        for (int i = 0; i < MR; i++) {
            float x = pa[i];
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++) acc[i][j] += x * row[j];
        }
    }
}

/* One register tile of c: `first` overwrites, later panels add. */
static void tile(int depth, const float *pa, const float *pb, float *c, long n, int height, int width, int first) {
    vec acc[MR][NV];
    for (int i = 0; i < MR; i++) {
        for (int j = 0; j < NV; j++) acc[i][j] = (vec){0};
    }
    micro(depth, pa, pb, acc);
    if (height == MR && width == NR) {
#pragma GCC unroll 12
        for (int i = 0; i < MR; i++) {
#pragma GCC unroll 4
            for (int j = 0; j < NV; j++) {
                vecu *at = (vecu *)(c + i * n + j * VEC);
                *at = first ? acc[i][j] : acc[i][j] + *at;
            }
        }
        return;
    }
    float edge[MR * NR];
    for (int i = 0; i < MR; i++) {
        for (int j = 0; j < NV; j++) *(vecu *)(edge + i * NR + j * VEC) = acc[i][j];
    }
    for (int i = 0; i < height; i++) {
        for (int j = 0; j < width; j++) c[i * n + j] = first ? edge[i * NR + j] : c[i * n + j] + edge[i * NR + j];
    }
}

static void block(int depth, const float *pack_a, const float *pack_b, float *c, long n, int height, int first) {
    for (long j = 0; j < n; j += NR) {
        int width = n - j < NR ? (int)(n - j) : NR;
        for (int i = 0; i < height; i += MR) {
            int rows = height - i < MR ? height - i : MR;
            tile(depth, pack_a + i * depth, pack_b + j * depth, c + i * n + j, n, rows, width, first);
        }
    }
}

void gemm_packed(const float *a, const float *b, float *c, int m, int n, int k, float *pack_a, float *pack_b) {
    long share = (long)m * n * k / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        float *mine = pack_a;
#ifdef _OPENMP
        mine += (long)omp_get_thread_num() * MC * KC;
#endif
        for (int p = 0; p < k; p += KC) {
            int depth = k - p < KC ? k - p : KC;
#pragma omp for schedule(static)
            for (int j = 0; j < n; j += NR) {
                pack_b_panel(pack_b + (long)j * depth, b + (long)p * n + j, n, depth, n - j < NR ? n - j : NR);
            }
#pragma omp for schedule(static)
            for (int i = 0; i < m; i += MC) {
                int height = m - i < MC ? m - i : MC;
                pack_a_block(mine, a + (long)i * k + p, k, depth, height);
                block(depth, mine, pack_b, c + (long)i * n, n, height, p == 0);
            }
        }
    }
}
