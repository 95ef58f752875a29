// CUDA's device functions, as far as host arithmetic can give the same values (fast approximations give the exact ones).
#pragma once

using std::isfinite; using std::isinf; using std::isnan;
template <class A, class B> static inline auto min(A a, B b) -> decltype(a + b) { return b < a ? b : a; }
template <class A, class B> static inline auto max(A a, B b) -> decltype(a + b) { return a < b ? b : a; }

static inline void __syncthreads() { ridgepoint::barrier(0, 0); }
static inline int __syncthreads_count(int p) { return ridgepoint::barrier(1, p); }
static inline int __syncthreads_and(int p) { return ridgepoint::barrier(2, p); }
static inline int __syncthreads_or(int p) { return ridgepoint::barrier(0, p); }
static inline void __syncwarp(unsigned mask = ~0u) { ridgepoint::exchange(mask, 0, 0); }
static inline unsigned __activemask() { return ridgepoint::exchange(~0u, 0, 0)->arrived; }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline void __trap() { __builtin_trap(); }
static inline void __nanosleep(unsigned) {}

template <class T> static inline T __shfl_sync(unsigned m, T v, int src, int width = 32) {
    int l = ridgepoint::lane();
    return ridgepoint::shuffle(m, v, (l & ~(width - 1)) | (src & (width - 1)), true);
}
template <class T> static inline T __shfl_xor_sync(unsigned m, T v, int x, int width = 32) {
    int l = ridgepoint::lane(), s = l ^ x;
    return ridgepoint::shuffle(m, v, s & 31, s < ((l & ~(width - 1)) + width));
}
template <class T> static inline T __shfl_down_sync(unsigned m, T v, unsigned d, int width = 32) {
    int l = ridgepoint::lane(), s = l + static_cast<int>(d);
    return ridgepoint::shuffle(m, v, s & 31, s < ((l & ~(width - 1)) + width));
}
template <class T> static inline T __shfl_up_sync(unsigned m, T v, unsigned d, int width = 32) {
    int l = ridgepoint::lane(), s = l - static_cast<int>(d);
    return ridgepoint::shuffle(m, v, s & 31, s >= (l & ~(width - 1)));
}
static inline unsigned __ballot_sync(unsigned m, int p) {
    const ridgepoint::Snapshot* s = ridgepoint::exchange(m, 0, p != 0);
    unsigned r = 0;
    for (int i = 0; i < 32; ++i) if ((s->arrived >> i & 1) && s->predicate[i]) r |= 1u << i;
    return r;
}
static inline int __any_sync(unsigned m, int p) { return __ballot_sync(m, p) != 0; }
static inline int __all_sync(unsigned m, int p) { return __ballot_sync(m, !p) == 0; }
template <class T, class F> static inline T ridgepointReduce(unsigned m, T v, F f) {
    const ridgepoint::Snapshot* s = ridgepoint::exchange(m, ridgepoint::bits(v), 0);
    T r{};
    bool first = true;
    for (int i = 0; i < 32; ++i) {
        if (!(s->arrived >> i & 1)) continue;
        T x = ridgepoint::value<T>(s->value[i]);
        r = first ? x : f(r, x);
        first = false;
    }
    return r;
}
template <class T> static inline T __reduce_add_sync(unsigned m, T v) { return ridgepointReduce(m, v, [](T a, T b) { return T(a + b); }); }
template <class T> static inline T __reduce_max_sync(unsigned m, T v) { return ridgepointReduce(m, v, [](T a, T b) { return a < b ? b : a; }); }
template <class T> static inline T __reduce_min_sync(unsigned m, T v) { return ridgepointReduce(m, v, [](T a, T b) { return b < a ? b : a; }); }
template <class T> static inline unsigned __match_any_sync(unsigned m, T v) {
    const ridgepoint::Snapshot* s = ridgepoint::exchange(m, ridgepoint::bits(v), 0);
    unsigned r = 0;
    for (int i = 0; i < 32; ++i) if ((s->arrived >> i & 1) && s->value[i] == ridgepoint::bits(v)) r |= 1u << i;
    return r;
}

// Threads of a grid run one after another here, so plain read-modify-write is atomic.
template <class T, class F> static inline T ridgepointAtomic(T* p, F f) { T old = *p; *p = f(old); return old; }
#define RIDGEPOINT_ATOMICS(T)                                                                                                     \
    static inline T atomicAdd(T* p, T v) { return ridgepointAtomic(p, [=](T o) { return static_cast<T>(o + v); }); }                           \
    static inline T atomicExch(T* p, T v) { return ridgepointAtomic(p, [=](T) { return v; }); }                                   \
    static inline T atomicMax(T* p, T v) { return ridgepointAtomic(p, [=](T o) { return o < v ? v : o; }); }                      \
    static inline T atomicMin(T* p, T v) { return ridgepointAtomic(p, [=](T o) { return v < o ? v : o; }); }                      \
    static inline T atomicCAS(T* p, T c, T v) { return ridgepointAtomic(p, [=](T o) { return o == c ? v : o; }); }
RIDGEPOINT_ATOMICS(int) RIDGEPOINT_ATOMICS(unsigned int) RIDGEPOINT_ATOMICS(unsigned long long) RIDGEPOINT_ATOMICS(long long)
static inline float atomicAdd(float* p, float v) { return ridgepointAtomic(p, [=](float o) { return o + v; }); }
static inline double atomicAdd(double* p, double v) { return ridgepointAtomic(p, [=](double o) { return o + v; }); }
static inline float atomicExch(float* p, float v) { return ridgepointAtomic(p, [=](float) { return v; }); }
#define RIDGEPOINT_BITWISE(T)                                                                              \
    static inline T atomicSub(T* p, T v) { return ridgepointAtomic(p, [=](T o) { return static_cast<T>(o - v); }); }    \
    static inline T atomicAnd(T* p, T v) { return ridgepointAtomic(p, [=](T o) { return o & v; }); }       \
    static inline T atomicOr(T* p, T v) { return ridgepointAtomic(p, [=](T o) { return o | v; }); }        \
    static inline T atomicXor(T* p, T v) { return ridgepointAtomic(p, [=](T o) { return o ^ v; }); }
RIDGEPOINT_BITWISE(int) RIDGEPOINT_BITWISE(unsigned int) RIDGEPOINT_BITWISE(unsigned long long)
static inline unsigned atomicInc(unsigned* p, unsigned v) { return ridgepointAtomic(p, [=](unsigned o) { return o >= v ? 0u : o + 1; }); }

#define RIDGEPOINT_LOAD(name) template <class T> static inline T name(const T* p) { return *p; }
RIDGEPOINT_LOAD(__ldg) RIDGEPOINT_LOAD(__ldcg) RIDGEPOINT_LOAD(__ldca) RIDGEPOINT_LOAD(__ldcs) RIDGEPOINT_LOAD(__ldlu) RIDGEPOINT_LOAD(__ldcv)
#define RIDGEPOINT_STORE(name) template <class T> static inline void name(T* p, T v) { *p = v; }
RIDGEPOINT_STORE(__stcg) RIDGEPOINT_STORE(__stcs) RIDGEPOINT_STORE(__stwb) RIDGEPOINT_STORE(__stwt)

static inline float __int_as_float(int v) { return ridgepoint::value<float>(ridgepoint::bits(v)); }
static inline int __float_as_int(float v) { return ridgepoint::value<int>(ridgepoint::bits(v)); }
static inline float __uint_as_float(unsigned v) { return ridgepoint::value<float>(ridgepoint::bits(v)); }
static inline unsigned __float_as_uint(float v) { return ridgepoint::value<unsigned>(ridgepoint::bits(v)); }
static inline double __longlong_as_double(long long v) { return ridgepoint::value<double>(ridgepoint::bits(v)); }
static inline long long __double_as_longlong(double v) { return ridgepoint::value<long long>(ridgepoint::bits(v)); }
#define __expf(v) (expf((v)))
#define __exp10f(v) (powf(10.f, (v)))
#define __logf(v) (logf((v)))
#define __log2f(v) (log2f((v)))
#define __sinf(v) (sinf((v)))
#define __cosf(v) (cosf((v)))
#define __powf(a, b) (powf((a), (b)))
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __frcp_rn(float v) { return 1.f / v; }
static inline float __fsqrt_rn(float v) { return sqrtf(v); }
static inline float __frsqrt_rn(float v) { return 1.f / sqrtf(v); }
static inline float rsqrtf(float v) { return 1.f / sqrtf(v); }
static inline double rsqrt(double v) { return 1. / sqrt(v); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline float __saturatef(float v) { return v < 0 ? 0 : v > 1 ? 1 : v; }
static inline int __float2int_rn(float v) { return static_cast<int>(nearbyintf(v)); }
static inline int __float2int_rz(float v) { return static_cast<int>(v); }
static inline float __int2float_rn(int v) { return static_cast<float>(v); }
static inline float __double2float_rn(double v) { return static_cast<float>(v); }
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
static inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v)); }
static inline int __clzll(long long v) { return v == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(v)); }
static inline int __ffs(int v) { return __builtin_ffs(v); }
static inline unsigned __brev(unsigned v) {
    unsigned r = 0;
    for (int i = 0; i < 32; ++i) r |= (v >> i & 1u) << (31 - i);
    return r;
}
static inline int __mul24(int a, int b) { return a * b; }
static inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32); }
static inline int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64); }
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) { s &= 31; return s ? hi << s | lo >> (32 - s) : hi; }
static inline long long clock64() { static long long t; return t += 100; }
static inline int clock() { return static_cast<int>(clock64()); }
static inline unsigned __cvta_generic_to_shared(const void* p) { return static_cast<unsigned>(reinterpret_cast<size_t>(p)); }
