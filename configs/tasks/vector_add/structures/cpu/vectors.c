/* ridgepoint
direction: explicit-vectors
launch:
  - kernel: add_vectors
    args: [a, b, c, n]
params:
  VEC:      {values: [4, 8, 16]}                     # lanes of one vector
  UNROLL:   {values: [1, 2, 4, 8]}                   # vectors a step
  PREFETCH: {values: [0, 128, 512, 2048]}            # floats asked for ahead; 0: none
  THREADS:  {values: [1, 2, 4, 8]}
  GRAIN:    {values: [16384, 65536, 262144, 1048576]} # elements that one more thread must be worth
constraints: ["VEC * UNROLL <= 64"]
default: {VEC: 8, UNROLL: 2, PREFETCH: 0, THREADS: 2, GRAIN: 262144}
*/

/* One stretch of the vectors a thread, in steps of UNROLL vectors, and a scalar tail. */

typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

enum { STEP = VEC * UNROLL };

static void add_stretch(const float *a, const float *b, float *c, long count) {
    long i = 0;
    for (; i + STEP <= count; i += STEP) {
#if PREFETCH > 0
        for (int u = 0; u < STEP; u += 16) {
            __builtin_prefetch(a + i + u + PREFETCH);
            __builtin_prefetch(b + i + u + PREFETCH);
        }
#endif
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++) {
            *(vecu *)(c + i + u * VEC) = *(const vecu *)(a + i + u * VEC) + *(const vecu *)(b + i + u * VEC);
        }
    }
    for (; i < count; i++) c[i] = a[i] + b[i];
}

void add_vectors(const float *a, const float *b, float *c, int n) {
    int share = n / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? share : THREADS;
    if (threads < 2) { /* spares the call into the thread library */
        add_stretch(a, b, c, n);
        return;
    }
    long part = ((n + threads - 1) / threads + 15) / 16 * 16;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) {
        long from = t * part, to = from + part < n ? from + part : n;
        if (from < to) add_stretch(a + from, b + from, c + from, to - from);
    }
}
