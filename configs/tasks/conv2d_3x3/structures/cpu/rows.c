/* ridgepoint
direction: rows-at-once
launch:
  - kernel: conv_rows
    args: [input, weight, output, h, w]
params:
  VEC:     {values: [4, 8, 16]}              # lanes of one vector
  ROWS:    {values: [1, 2, 3, 4, 6]}         # output rows computed together: they share the input rows between them
  STREAM:  {values: [0, 1048576, 4194304]}   # pixels from which results go round the caches; 0: never
  THREADS: {values: [1, 2, 4, 8]}
  GRAIN:   {values: [16384, 65536, 262144]}  # pixels that one more thread must be worth
default: {VEC: 8, ROWS: 2, STREAM: 0, THREADS: 2, GRAIN: 262144}
*/

/* ROWS output rows go from left to right together, so that ROWS + 2 rows are read for ROWS written. Groups next to the upper or lower
 * edge go row by row and leave out what is outside. */

#if defined(__SSE__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

static inline vec load(const float *p) { return *(const vecu *)p; }

static inline void put(float *p, vec v, int past_caches) {
#if defined(__AVX__) && VEC == 8
    if (past_caches) {
        _mm256_stream_ps(p, (__m256)v);
        return;
    }
#elif defined(__SSE__) && VEC == 4
    if (past_caches) {
        _mm_stream_ps(p, (__m128)v);
        return;
    }
#else
    (void)past_caches; /* no such store for this vector */
#endif
    *(vecu *)p = v;
}

static float pixel(const float *input, const float *weight, int h, int w, int y, int x) {
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
            int yy = y + dy, xx = x + dx;
            if (yy >= 0 && yy < h && xx >= 0 && xx < w) sum += weight[3 * dy + dx + 4] * input[(long)yy * w + xx];
        }
    }
    return sum;
}

/* Output rows [y, y + rows) of the columns from x on, whole vectors with both neighbours only; returns the first column not done.
 * Input rows above `upper` and below `lower`, -1 to rows, count as zeros; constants at every call, like rows. */
static inline __attribute__((always_inline)) int sweep(const float *input, const float *weight, float *output, int w, int y, int rows,
                                                       int upper, int lower, int x, int past_caches) {
    float k[9]; /* a copy that no store can touch */
    for (int i = 0; i < 9; i++) k[i] = weight[i];
    for (; x + VEC < w; x += VEC) {
        vec sum[ROWS];
        for (int r = 0; r < rows; r++) sum[r] = (vec){0};
#pragma GCC unroll 8
        for (int i = upper; i <= lower; i++) {
            const float *row = input + (long)(y + i) * w + x;
            vec left = load(row - 1), mid = load(row), right = load(row + 1);
#pragma GCC unroll 3
            for (int d = 0; d < 3; d++) {
                int r = i + 1 - d;
                if (r < 0 || r >= rows) continue;
                sum[r] += left * k[3 * d];
                sum[r] += mid * k[3 * d + 1];
                sum[r] += right * k[3 * d + 2];
            }
        }
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) put(output + (long)(y + r) * w + x, sum[r], past_caches);
    }
    return x;
}

static int edge_row(const float *input, const float *weight, float *output, int h, int w, int y, int x, int past_caches) {
    if (y > 0 && y + 1 < h) return sweep(input, weight, output, w, y, 1, -1, 1, x, past_caches);
    if (y > 0) return sweep(input, weight, output, w, y, 1, -1, 0, x, past_caches);
    if (y + 1 < h) return sweep(input, weight, output, w, y, 1, 0, 1, x, past_caches);
    return sweep(input, weight, output, w, y, 1, 0, 0, x, past_caches);
}

void conv_rows(const float *input, const float *weight, float *output, int h, int w) {
    long pixels = (long)h * w, share = pixels / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    int groups = (h + ROWS - 1) / ROWS;
    /* Stores past the caches need aligned vectors: rows that start alike, and a first column that is a whole vector. */
    int past_caches = STREAM > 0 && pixels >= STREAM && w % VEC == 0 && ((unsigned long)output & (4 * VEC - 1)) == 0;
    int first = past_caches ? VEC : 1;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int g = 0; g < groups; g++) {
        int y = g * ROWS, count = h - y < ROWS ? h - y : ROWS, x = first;
        if (y > 0 && y + ROWS < h) {
            x = sweep(input, weight, output, w, y, ROWS, -1, ROWS, first, past_caches);
        } else {
            for (int r = y; r < y + count; r++) x = edge_row(input, weight, output, h, w, r, first, past_caches);
        }
        for (int r = 0; r < count; r++) {
            float *out = output + (long)(y + r) * w;
            for (int k = 0; k < first && k < w; k++) out[k] = pixel(input, weight, h, w, y + r, k);
            for (int k = x; k < w; k++) out[k] = pixel(input, weight, h, w, y + r, k);
        }
#if defined(__SSE__)
        if (past_caches) _mm_sfence();
#endif
    }
}
