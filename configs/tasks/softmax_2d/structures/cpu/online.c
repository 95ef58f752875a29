/* ridgepoint
direction: online
launch:
  - kernel: softmax_online
    args: [input, output, rows, cols]
params:
  VEC:     {values: [4, 8, 16]}              # lanes of one vector
  UNROLL:  {values: [1, 2, 4, 8]}            # vectors in flight; also the block between two looks at the maximum
  DEGREE:  {values: [5, 6]}                  # of the exponential's polynomial: one unit in the last place, or well under it
  STREAM:  {values: [0, 1048576, 4194304]}   # elements from which results go round the caches; 0: never
  THREADS: {values: [1, 2, 4, 8]}
  GRAIN:   {values: [4096, 32768, 262144]}    # elements that one more thread must be worth
constraints: ["VEC * UNROLL <= 64"]
default: {VEC: 8, UNROLL: 4, DEGREE: 5, STREAM: 0, THREADS: 2, GRAIN: 262144}
*/

/* Two passes over a row. The first keeps, in every lane, the maximum so far and the sum of exponentials below it, and rescales the
 * sum when a block raises the maximum (Milakov and Gimelshein, arXiv 1805.02867). The second writes each result once, so it may
 * bypass the caches: no line of the output is read before it is overwritten. */

#if defined(__SSE__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef int veci __attribute__((vector_size(4 * VEC)));
typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

enum { STEP = VEC * UNROLL };

static inline vec splat(float a) { return a - (vec){0}; }
static inline vec load(const float *p) { return *(const vecu *)p; }

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

/* Stores past the caches when p is aligned to the vector; the caller has seen to that. */
static inline void stream(float *p, vec v) {
#if defined(__AVX512F__) && VEC == 16
    _mm512_stream_ps(p, (__m512)v);
#elif defined(__AVX__) && VEC >= 8
    for (int i = 0; i < VEC; i += 8) {
        _mm256_stream_ps(p + i, _mm256_loadu_ps((const float *)&v + i));
    }
#elif defined(__SSE__)
    for (int i = 0; i < VEC; i += 4) _mm_stream_ps(p + i, _mm_loadu_ps((const float *)&v + i));
#else
    *(vecu *)p = v;
#endif
}

static float row_statistics(const float *x, int cols, float *sum_out) {
    vec top = splat(-3.402823466e38f), sum = splat(0.0f);
    int c = 0;
    for (; c + STEP <= cols; c += STEP) {
        vec v[UNROLL], high = top;
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++) {
            v[u] = load(x + c + u * VEC);
            high = larger(high, v[u]);
        }
        vec part = splat(0.0f);
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++) part += exp_nonpositive(v[u] - high);
        sum = sum * exp_nonpositive(top - high) + part;
        top = high;
    }
    float m = x[0];
    for (int i = 0; i < VEC; i++) m = top[i] > m ? top[i] : m;
    for (int k = c; k < cols; k++) m = x[k] > m ? x[k] : m;
    sum *= exp_nonpositive(top - m);
    float total = 0.0f;
    for (int i = 0; i < VEC; i++) total += sum[i];
    for (; c < cols; c++) total += exp_scalar(x[c] - m);
    *sum_out = total;
    return m;
}

static void row_write(const float *x, float *y, int cols, float top, float factor, int past_caches) {
    int c = 0;
    if (past_caches) {
        for (; c < cols && ((unsigned long)(y + c) & (4 * VEC - 1)) != 0; c++) y[c] = exp_scalar(x[c] - top) * factor;
        for (; c + VEC <= cols; c += VEC) stream(y + c, exp_nonpositive(load(x + c) - top) * factor);
    } else {
        for (; c + STEP <= cols; c += STEP) {
#pragma GCC unroll 8
            for (int u = 0; u < UNROLL; u++) {
                *(vecu *)(y + c + u * VEC) = exp_nonpositive(load(x + c + u * VEC) - top) * factor;
            }
        }
    }
    for (; c < cols; c++) y[c] = exp_scalar(x[c] - top) * factor;
}

void softmax_online(const float *input, float *output, int rows, int cols) {
    long elements = (long)rows * cols, share = elements / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    int past_caches = STREAM > 0 && elements >= STREAM;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int r = 0; r < rows; r++) {
            const float *x = input + (long)r * cols;
            float sum, top = row_statistics(x, cols, &sum);
            row_write(x, output + (long)r * cols, cols, top, 1.0f / sum, past_caches);
        }
#if defined(__SSE__)
        if (past_caches) _mm_sfence();
#endif
    }
}
