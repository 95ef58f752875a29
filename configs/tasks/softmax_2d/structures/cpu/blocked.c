/* ridgepoint
direction: row-in-cache
launch:
  - kernel: softmax_blocked
    args: [input, output, rows, cols]
params:
  VEC:      {values: [4, 8, 16]}            # lanes of one vector
  UNROLL:   {values: [1, 2, 4, 8]}          # vectors in flight
  DEGREE:   {values: [5, 6]}                # of the exponential's polynomial: one unit in the last place, or well under it
  PREFETCH: {values: [0, 256, 1024, 4096]}  # floats of the next rows asked for ahead, in the first pass; 0: none
  THREADS:  {values: [1, 2, 4, 8]}
  GRAIN:    {values: [4096, 32768, 262144]}  # elements that one more thread must be worth
constraints: ["VEC * UNROLL <= 64"]
default: {VEC: 8, UNROLL: 4, DEGREE: 5, PREFETCH: 256, THREADS: 2, GRAIN: 262144}
*/

/* Three passes over one row at a time, so that the second and the third find the row in the nearest cache: the maximum, the
 * exponentials with their sum, the scaling. Everything is done on whole vectors, with a scalar tail of the same arithmetic. */

#if defined(__SSE__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef int veci __attribute__((vector_size(4 * VEC)));
typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

enum { STEP = VEC * UNROLL };

static inline vec splat(float a) { return a - (vec){0}; }

static inline vec larger(vec a, vec b) {
#if defined(__AVX512F__) && VEC == 16
    return (vec)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX__) && VEC == 8
    return (vec)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(__SSE__) && VEC == 4
    return (vec)_mm_max_ps((__m128)a, (__m128)b);
#else
    veci first = a > b;
    return (vec)(((veci)a & first) | ((veci)b & ~first));
#endif
}

/* exp(x) for x <= 0: 2^n times a minimax polynomial of r = x - n ln 2 in [-ln2/2, ln2/2]. Below -87 it stays at 1.6e-38. */
static inline vec exp_nonpositive(vec x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, left in the low bits */
    x = larger(x, splat(-87.0f));
    vec biased = x * 1.44269504f + shift;
    vec n = biased - shift;
    vec r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
#if DEGREE == 5
    vec p = r * 8.312501338292339e-3f + 4.189033152973904e-2f;
    p = p * r + 1.666711538808019e-1f;
    p = p * r + 4.9999230309500486e-1f;
#else
    vec p = r * 1.3814540174995082e-3f + 8.368745108946881e-3f;
    p = p * r + 4.166839078358273e-2f;
    p = p * r + 1.666652039904253e-1f;
    p = p * r + 4.9999993432129125e-1f;
#endif
    p = p * (r * r) + r + 1.0f;
    veci power = ((veci)biased - 0x4b400000 + 127) << 23;
    return p * (vec)power;
}

static inline float exp_scalar(float x) { return exp_nonpositive(splat(x))[0]; }

static float row_max(const float *x, int cols) {
    float top = x[0];
    int c = 0;
    if (cols >= STEP) {
        vec m[UNROLL];
        for (int u = 0; u < UNROLL; u++) m[u] = *(const vecu *)(x + u * VEC);
        for (c = STEP; c + STEP <= cols; c += STEP) {
#pragma GCC unroll 8
            for (int u = 0; u < UNROLL; u++) m[u] = larger(m[u], *(const vecu *)(x + c + u * VEC));
#if PREFETCH > 0
            for (int u = 0; u < STEP; u += 16) __builtin_prefetch(x + c + u + PREFETCH);
#endif
        }
        for (int u = 1; u < UNROLL; u++) m[0] = larger(m[0], m[u]);
        for (int i = 0; i < VEC; i++) top = m[0][i] > top ? m[0][i] : top;
    }
    for (; c < cols; c++) top = x[c] > top ? x[c] : top;
    return top;
}

static float row_exp(const float *x, float *y, int cols, float top) {
    float sum = 0.0f;
    int c = 0;
    vec s[UNROLL];
    for (int u = 0; u < UNROLL; u++) s[u] = splat(0.0f);
    for (; c + STEP <= cols; c += STEP) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++) {
            vec e = exp_nonpositive(*(const vecu *)(x + c + u * VEC) - top);
            *(vecu *)(y + c + u * VEC) = e;
            s[u] += e;
        }
    }
    for (; c + VEC <= cols; c += VEC) {
        vec e = exp_nonpositive(*(const vecu *)(x + c) - top);
        *(vecu *)(y + c) = e;
        s[0] += e;
    }
    for (int u = 1; u < UNROLL; u++) s[0] += s[u];
    for (int i = 0; i < VEC; i++) sum += s[0][i];
    for (; c < cols; c++) {
        y[c] = exp_scalar(x[c] - top);
        sum += y[c];
    }
    return sum;
}

static void row_scale(float *y, int cols, float factor) {
    int c = 0;
    for (; c + STEP <= cols; c += STEP) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++) *(vecu *)(y + c + u * VEC) *= factor;
    }
    for (; c < cols; c++) y[c] *= factor;
}

void softmax_blocked(const float *input, float *output, int rows, int cols) {
    long share = (long)rows * cols / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int r = 0; r < rows; r++) {
        const float *x = input + (long)r * cols;
        float *y = output + (long)r * cols;
        float top = row_max(x, cols);
        row_scale(y, cols, 1.0f / row_exp(x, y, cols, top));
    }
}
