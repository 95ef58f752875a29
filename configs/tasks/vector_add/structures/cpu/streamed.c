/* ridgepoint
direction: stores-past-caches
launch:
  - kernel: add_streamed
    args: [a, b, c, n]
params:
  UNROLL:  {values: [1, 2, 4, 8]}                      # lines of 16 floats a step
  STREAM:  {values: [65536, 1048576, 8388608]}         # elements from which the result goes round the caches
  THREADS: {values: [1, 2, 4, 8]}
  GRAIN:   {values: [16384, 65536, 262144, 1048576]}   # elements that one more thread must be worth
default: {UNROLL: 4, STREAM: 1048576, THREADS: 2, GRAIN: 262144}
*/

/* Large results are stored past the caches, which saves reading each line of c before it is overwritten: three transfers, not four. */

#if defined(__SSE__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(32)));
typedef float vecu __attribute__((vector_size(32), aligned(4), may_alias));

enum { STEP = 16 * UNROLL };

static inline void stream(float *p, vec v) {
#if defined(__AVX__)
    _mm256_stream_ps(p, (__m256)v);
#elif defined(__SSE__)
    for (int i = 0; i < 8; i += 4) _mm_stream_ps(p + i, _mm_loadu_ps((const float *)&v + i));
#else
    *(vecu *)p = v;
#endif
}

static void add_stretch(const float *a, const float *b, float *c, long count, int past_caches) {
    long i = 0;
    if (past_caches) {
        for (; i < count && ((unsigned long)(c + i) & 63) != 0; i++) c[i] = a[i] + b[i];
        for (; i + STEP <= count; i += STEP) {
#pragma GCC unroll 16
            for (int u = 0; u < STEP; u += 8) stream(c + i + u, *(const vecu *)(a + i + u) + *(const vecu *)(b + i + u));
        }
#if defined(__SSE__)
        _mm_sfence();
#endif
    } else {
        for (; i + STEP <= count; i += STEP) {
#pragma GCC unroll 16
            for (int u = 0; u < STEP; u += 8) *(vecu *)(c + i + u) = *(const vecu *)(a + i + u) + *(const vecu *)(b + i + u);
        }
    }
    for (; i < count; i++) c[i] = a[i] + b[i];
}

void add_streamed(const float *a, const float *b, float *c, int n) {
    int share = n / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? share : THREADS;
    if (threads < 2) { /* spares the call into the thread library */
        add_stretch(a, b, c, n, n >= STREAM);
        return;
    }
    long part = ((n + threads - 1) / threads + 15) / 16 * 16;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int t = 0; t < threads; t++) {
        long from = t * part, to = from + part < n ? from + part : n;
        if (from < to) add_stretch(a + from, b + from, c + from, to - from, n >= STREAM);
    }
}
