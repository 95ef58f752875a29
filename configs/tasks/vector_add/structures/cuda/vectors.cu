/* ridgepoint
direction: one-pass
launch:
  - kernel: add_vectors
    grid:  ["ceil_div(n, THREADS * VEC * UNROLL)"]
    block: [THREADS]
    args:  [a, b, c, n]
params:
  THREADS: {values: [32, 64, 128, 256, 512, 1024]}
  VEC:     {values: [1, 2, 4]}               # floats of one access
  UNROLL:  {values: [1, 2, 4, 8]}            # accesses of each input that a thread has in flight
  LOAD:    {values: [0, 1]}                  # 1: loads are marked as used once
  STORE:   {values: [0, 1]}                  # 1: stores are marked as not used again
default: {THREADS: 256, VEC: 4, UNROLL: 1, LOAD: 0, STORE: 1}
*/

// Every block adds one stretch; the block that the vector's end cuts goes element by element.

template <int N> struct Pack;
template <> struct Pack<1> { typedef float type; };
template <> struct Pack<2> { typedef float2 type; };
template <> struct Pack<4> { typedef float4 type; };
typedef Pack<VEC>::type pack;

__device__ __forceinline__ float add(float a, float b) { return a + b; }
__device__ __forceinline__ float2 add(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ __forceinline__ float4 add(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

__device__ __forceinline__ pack load(const float* p) {
    const pack* q = reinterpret_cast<const pack*>(p);
    return LOAD ? __ldcs(q) : *q;
}

extern "C" __global__ void __launch_bounds__(THREADS) add_vectors(const float* __restrict__ a, const float* __restrict__ b,
                                                                  float* __restrict__ c, int n) {
    long from = (long)blockIdx.x * (THREADS * VEC * UNROLL);
    if (from + THREADS * VEC * UNROLL <= n) {
        pack x[UNROLL], y[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            long i = from + (u * THREADS + (int)threadIdx.x) * VEC;
            x[u] = load(a + i);
            y[u] = load(b + i);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            pack* at = reinterpret_cast<pack*>(c + from + (u * THREADS + (int)threadIdx.x) * VEC);
            if (STORE) __stcs(at, add(x[u], y[u]));
            else *at = add(x[u], y[u]);
        }
    } else {
        for (long i = from + threadIdx.x; i < n; i += THREADS) c[i] = a[i] + b[i];
    }
}
