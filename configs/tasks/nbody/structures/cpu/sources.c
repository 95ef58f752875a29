/* ridgepoint
direction: vector-of-sources
launch:
  - kernel: nbody_sources
    args: [position, velocity, new_position, new_velocity, n, dt, softening, columns]
workspace:
  columns: {shape: [4, "ceil_div(n, 16) * 16"], dtype: float32, init: none}
params:
  VEC:     {values: [4, 8, 16]}            # sources of one vector
  BODIES:  {values: [1, 2, 3, 4]}          # bodies that share each load of sources
  TILE:    {values: [256, 1024, 4096]}     # sources walked before the next bodies take their turn
  NEWTON:  {values: [0, 1, 2]}             # 0: square root and division; else an estimate of 1/sqrt and so many Newton steps
  THREADS: {values: [1, 2, 4, 8]}
  GRAIN:   {values: [65536, 262144, 1048576]}  # pairs that one more thread must be worth
default: {VEC: 8, BODIES: 2, TILE: 4096, NEWTON: 1, THREADS: 2, GRAIN: 1048576}
*/

/* Coordinates and masses are first laid out as four columns, filled up with bodies without mass; then every vector holds VEC sources
 * and a few bodies at a time sum their pulls lane by lane. NEWTON 1 needs the processor's own estimate of 1/sqrt (x86: 12 bits,
 * 23 after the step); elsewhere the estimate is the exponent trick and takes two steps more. */

#if defined(__SSE__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef int veci __attribute__((vector_size(4 * VEC)));
typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

static inline vec splat(float a) { return a - (vec){0}; }
static inline vec load(const float *p) { return *(const vecu *)p; }

static inline vec reciprocal_root(vec v) {
#if NEWTON == 0
#if defined(__AVX512F__) && VEC == 16
    return 1.0f / (vec)_mm512_sqrt_ps((__m512)v);
#elif defined(__AVX__) && VEC == 8
    return 1.0f / (vec)_mm256_sqrt_ps((__m256)v);
#elif defined(__SSE__) && VEC == 4
    return 1.0f / (vec)_mm_sqrt_ps((__m128)v);
#else
    for (int i = 0; i < VEC; i++) v[i] = 1.0f / __builtin_sqrtf(v[i]);
    return v;
#endif
#else
    int steps = NEWTON;
    vec e;
#if defined(__AVX512F__) && VEC == 16
    e = (vec)_mm512_rsqrt14_ps((__m512)v);
#elif defined(__AVX__) && VEC == 8
    e = (vec)_mm256_rsqrt_ps((__m256)v);
#elif defined(__SSE__) && VEC == 4
    e = (vec)_mm_rsqrt_ps((__m128)v);
#else
    e = (vec)(0x5f3759df - ((veci)v >> 1));
    steps += 2;
#endif
    vec half = v * 0.5f;
    for (int i = 0; i < steps; i++) e *= 1.5f - half * e * e;
    return e;
#endif
}

static inline float lane_sum(vec v) {
    float sum = 0.0f;
    for (int i = 0; i < VEC; i++) sum += v[i];
    return sum;
}

/* Adds to pull[3*b ...] what sources [from, to) do to `bodies` bodies at p. */
static inline __attribute__((always_inline)) void pull_of(const float *p, int bodies, const float *columns, long pitch, int from,
                                                          int to, float e2, float *pull) {
    vec ax[BODIES], ay[BODIES], az[BODIES];
    for (int b = 0; b < bodies; b++) ax[b] = ay[b] = az[b] = splat(0.0f);
    for (int j = from; j < to; j += VEC) {
        vec qx = load(columns + j), qy = load(columns + pitch + j), qz = load(columns + 2 * pitch + j);
        vec qm = load(columns + 3 * pitch + j);
#pragma GCC unroll 4
        for (int b = 0; b < bodies; b++) {
            vec dx = qx - p[4 * b], dy = qy - p[4 * b + 1], dz = qz - p[4 * b + 2];
            vec inverse = reciprocal_root(dx * dx + (dy * dy + (dz * dz + e2)));
            vec w = qm * inverse * (inverse * inverse);
            ax[b] += w * dx;
            ay[b] += w * dy;
            az[b] += w * dz;
        }
    }
    for (int b = 0; b < bodies; b++) {
        pull[3 * b] += lane_sum(ax[b]);
        pull[3 * b + 1] += lane_sum(ay[b]);
        pull[3 * b + 2] += lane_sum(az[b]);
    }
}

enum { BLOCK = 16 * BODIES };

void nbody_sources(const float *position, const float *velocity, float *new_position, float *new_velocity, int n, float dt,
                   float softening, float *columns) {
    long share = (long)n * n / GRAIN, pitch = (n + 15L) / 16 * 16;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (long j = 0; j < pitch; j++) {
            const float *q = position + 4 * (j < n ? j : n - 1);
            for (int d = 0; d < 3; d++) columns[d * pitch + j] = q[d];
            columns[3 * pitch + j] = j < n ? q[3] : 0.0f;
        }
#pragma omp for schedule(static)
        for (int i0 = 0; i0 < n; i0 += BLOCK) {
            int count = n - i0 < BLOCK ? n - i0 : BLOCK;
            float pull[3 * BLOCK] = {0};
            const float *p = position + 4L * i0;
            for (int from = 0; from < pitch; from += TILE) {
                int to = pitch - from < TILE ? (int)pitch : from + TILE, i = 0;
                for (; i + BODIES <= count; i += BODIES) {
                    pull_of(p + 4 * i, BODIES, columns, pitch, from, to, softening * softening, pull + 3 * i);
                }
                for (; i < count; i++) pull_of(p + 4 * i, 1, columns, pitch, from, to, softening * softening, pull + 3 * i);
            }
            for (int i = 0; i < count; i++) {
                const float *v = velocity + 4L * (i0 + i);
                float *s = new_position + 4L * (i0 + i), *t = new_velocity + 4L * (i0 + i);
                for (int d = 0; d < 3; d++) {
                    t[d] = v[d] + dt * pull[3 * i + d];
                    s[d] = p[4 * i + d] + dt * t[d];
                }
                t[3] = v[3];
                s[3] = p[4 * i + 3];
            }
        }
    }
}
