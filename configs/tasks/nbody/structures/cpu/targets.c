/* ridgepoint
direction: vector-of-targets
launch:
  - kernel: nbody_targets
    args: [position, velocity, new_position, new_velocity, n, dt, softening]
params:
  VEC:     {values: [4, 8, 16]}            # bodies of one vector
  UNROLL:  {values: [1, 2, 4]}             # vectors of bodies that share one walk over all others
  NEWTON:  {values: [0, 1, 2, 3]}          # 0: square root and division; else an estimate of 1/sqrt and so many Newton steps
  THREADS: {values: [1, 2, 4, 8]}
  GRAIN:   {values: [65536, 262144, 1048576]}  # pairs that one more thread must be worth
constraints: ["VEC * UNROLL <= 32"]
default: {VEC: 8, UNROLL: 2, NEWTON: 1, THREADS: 2, GRAIN: 1048576}
*/

/* Each lane holds one body and walks over all others, whose coordinates are broadcast. NEWTON 1 needs the processor's own estimate of
 * 1/sqrt (x86: 12 bits, 23 after the step); elsewhere the estimate is the exponent trick and takes two steps more. */

#if defined(__SSE__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef int veci __attribute__((vector_size(4 * VEC)));

enum { GROUP = VEC * UNROLL };

static inline vec splat(float a) { return a - (vec){0}; }

static inline vec root(vec v) {
#if defined(__AVX512F__) && VEC == 16
    return (vec)_mm512_sqrt_ps((__m512)v);
#elif defined(__AVX__) && VEC == 8
    return (vec)_mm256_sqrt_ps((__m256)v);
#elif defined(__SSE__) && VEC == 4
    return (vec)_mm_sqrt_ps((__m128)v);
#else
    for (int i = 0; i < VEC; i++) v[i] = __builtin_sqrtf(v[i]);
    return v;
#endif
}

static inline vec reciprocal_root(vec v) {
#if NEWTON == 0
    return 1.0f / root(v);
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

static void group(const float *position, const float *velocity, float *new_position, float *new_velocity, int n, int from,
                  float dt, float softening) {
    vec x[UNROLL], y[UNROLL], z[UNROLL], ax[UNROLL], ay[UNROLL], az[UNROLL];
    for (int u = 0; u < UNROLL; u++) {
        ax[u] = ay[u] = az[u] = splat(0.0f);
        for (int l = 0; l < VEC; l++) {
            int i = from + u * VEC + l;
            const float *p = position + 4L * (i < n ? i : n - 1);
            x[u][l] = p[0], y[u][l] = p[1], z[u][l] = p[2];
        }
    }
    float e2 = softening * softening;
    for (int j = 0; j < n; j++) {
        const float *q = position + 4L * j;
        vec qx = splat(q[0]), qy = splat(q[1]), qz = splat(q[2]), qm = splat(q[3]);
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++) {
            vec dx = qx - x[u], dy = qy - y[u], dz = qz - z[u];
            vec inverse = reciprocal_root(dx * dx + (dy * dy + (dz * dz + e2)));
            vec w = qm * inverse * (inverse * inverse);
            ax[u] += w * dx;
            ay[u] += w * dy;
            az[u] += w * dz;
        }
    }
    for (int u = 0; u < UNROLL; u++) {
        for (int l = 0; l < VEC; l++) {
            int i = from + u * VEC + l;
            if (i >= n) return;
            const float *p = position + 4L * i, *v = velocity + 4L * i;
            float *s = new_position + 4L * i, *t = new_velocity + 4L * i;
            float pull[3] = {ax[u][l], ay[u][l], az[u][l]};
            for (int d = 0; d < 3; d++) {
                t[d] = v[d] + dt * pull[d];
                s[d] = p[d] + dt * t[d];
            }
            t[3] = v[3];
            s[3] = p[3];
        }
    }
}

void nbody_targets(const float *position, const float *velocity, float *new_position, float *new_velocity, int n, float dt,
                   float softening) {
    long share = (long)n * n / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int i = 0; i < n; i += GROUP) group(position, velocity, new_position, new_velocity, n, i, dt, softening);
}
