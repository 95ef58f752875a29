// CUDA's built-in vector types.
#pragma once

#define RIDGEPOINT_VECTOR(T, N, A2, A4)                                                                   \
    struct N##1 { T x; };                                                                                 \
    struct alignas(A2) N##2 { T x, y; };                                                                  \
    struct N##3 { T x, y, z; };                                                                           \
    struct alignas(A4) N##4 { T x, y, z, w; };                                                            \
    static inline N##1 make_##N##1(T x) { return {x}; }                                                   \
    static inline N##2 make_##N##2(T x, T y) { return {x, y}; }                                           \
    static inline N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                   \
    static inline N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }

#define uint3 ridgepoint_uint3
RIDGEPOINT_VECTOR(signed char, char, 2, 4)
RIDGEPOINT_VECTOR(unsigned char, uchar, 2, 4)
RIDGEPOINT_VECTOR(short, short, 4, 8)
RIDGEPOINT_VECTOR(unsigned short, ushort, 4, 8)
RIDGEPOINT_VECTOR(int, int, 8, 16)
RIDGEPOINT_VECTOR(unsigned int, uint, 8, 16)
RIDGEPOINT_VECTOR(long, long, 16, 16)
RIDGEPOINT_VECTOR(unsigned long, ulong, 16, 16)
RIDGEPOINT_VECTOR(long long, longlong, 16, 16)
RIDGEPOINT_VECTOR(unsigned long long, ulonglong, 16, 16)
RIDGEPOINT_VECTOR(float, float, 8, 16)
RIDGEPOINT_VECTOR(double, double, 16, 16)
#undef uint3
