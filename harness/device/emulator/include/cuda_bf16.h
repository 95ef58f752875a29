// bfloat16 for the emulator: round to nearest even after each operation.
#pragma once
struct __nv_bfloat16 {
    unsigned short b;
    __nv_bfloat16() = default;
    __nv_bfloat16(float f) {
        unsigned u = __float_as_uint(f);
        b = std::isnan(f) ? 0x7fff : static_cast<unsigned short>((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    operator float() const { return __uint_as_float(static_cast<unsigned>(b) << 16); }
};
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };
static inline __nv_bfloat16 __float2bfloat16(float f) { return __nv_bfloat16(f); }
static inline __nv_bfloat16 __float2bfloat16_rn(float f) { return __nv_bfloat16(f); }
static inline float __bfloat162float(__nv_bfloat16 h) { return static_cast<float>(h); }
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }
static inline float2 __bfloat1622float2(__nv_bfloat162 h) { return {float(h.x), float(h.y)}; }
