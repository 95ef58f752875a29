// Half precision for the emulator: arithmetic rounds after each operation, as the card's does.
#pragma once
struct __half {
    _Float16 v;
    __half() = default;
    __half(float f) : v(static_cast<_Float16>(f)) {}
    __half(double f) : v(static_cast<_Float16>(f)) {}
    __half(int f) : v(static_cast<_Float16>(f)) {}
    operator float() const { return static_cast<float>(v); }
};
typedef __half half;
struct alignas(4) __half2 { __half x, y; };
typedef __half2 half2;
static inline __half __float2half(float f) { return __half(f); }
static inline __half __float2half_rn(float f) { return __half(f); }
static inline float __half2float(__half h) { return static_cast<float>(h.v); }
static inline __half __int2half_rn(int i) { return __half(static_cast<float>(i)); }
static inline __half __hadd(__half a, __half b) { return __half(float(a) + float(b)); }
static inline __half __hsub(__half a, __half b) { return __half(float(a) - float(b)); }
static inline __half __hmul(__half a, __half b) { return __half(float(a) * float(b)); }
static inline __half __hdiv(__half a, __half b) { return __half(float(a) / float(b)); }
static inline __half __hfma(__half a, __half b, __half c) { return __half(fmaf(float(a), float(b), float(c))); }
static inline __half __hmax(__half a, __half b) { return float(a) < float(b) ? b : a; }
static inline __half __hmin(__half a, __half b) { return float(b) < float(a) ? b : a; }
static inline bool __hgt(__half a, __half b) { return float(a) > float(b); }
static inline bool __hlt(__half a, __half b) { return float(a) < float(b); }
static inline __half hexp(__half a) { return __half(expf(a)); }
static inline __half hlog(__half a) { return __half(logf(a)); }
static inline __half hsqrt(__half a) { return __half(sqrtf(a)); }
static inline __half hrcp(__half a) { return __half(1.f / float(a)); }
static inline __half2 make_half2(__half a, __half b) { return {a, b}; }
static inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
static inline __half2 __float2half2_rn(float f) { return {__half(f), __half(f)}; }
static inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
static inline __half __low2half(__half2 h) { return h.x; }
static inline __half __high2half(__half2 h) { return h.y; }
static inline float __low2float(__half2 h) { return h.x; }
static inline float __high2float(__half2 h) { return h.y; }
static inline float2 __half22float2(__half2 h) { return {float(h.x), float(h.y)}; }
static inline __half2 __hadd2(__half2 a, __half2 b) { return {__hadd(a.x, b.x), __hadd(a.y, b.y)}; }
static inline __half2 __hmul2(__half2 a, __half2 b) { return {__hmul(a.x, b.x), __hmul(a.y, b.y)}; }
static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
