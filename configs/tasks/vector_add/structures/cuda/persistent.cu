/* ridgepoint
direction: persistent
launch:
  - kernel: add_persistent
    grid:  ["min(ceil_div(n, THREADS * 4), BLOCKS)"]
    block: [THREADS]
    args:  [a, b, c, n]
params:
  THREADS: {values: [64, 128, 256, 512, 1024]}
  UNROLL:  {values: [1, 2, 4]}                                # float4 of each input in flight
  BLOCKS:  {values: [132, 264, 528, 1056, 2112, 4224]}        # at most: multiples of the 132 processors of an H100 or H200
  STORE:   {values: [0, 1]}                                   # 1: stores are marked as not used again
default: {THREADS: 256, UNROLL: 1, BLOCKS: 1056, STORE: 1}
*/

// A fixed number of blocks strides over the vectors, so that no block starts late.

__device__ __forceinline__ float4 add(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

extern "C" __global__ void __launch_bounds__(THREADS) add_persistent(const float* __restrict__ a, const float* __restrict__ b,
                                                                     float* __restrict__ c, int n) {
    const float4 *a4 = reinterpret_cast<const float4*>(a), *b4 = reinterpret_cast<const float4*>(b);
    float4* c4 = reinterpret_cast<float4*>(c);
    long quads = n / 4, step = (long)gridDim.x * THREADS, at = (long)blockIdx.x * THREADS + threadIdx.x, i = at;
    for (; i + (UNROLL - 1) * step < quads; i += UNROLL * step) {
        float4 x[UNROLL], y[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            x[u] = a4[i + u * step];
            y[u] = b4[i + u * step];
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (STORE) __stcs(c4 + i + u * step, add(x[u], y[u]));
            else c4[i + u * step] = add(x[u], y[u]);
        }
    }
    for (; i < quads; i += step) c4[i] = add(a4[i], b4[i]);
    for (long k = 4 * quads + at; k < n; k += step) c[k] = a[k] + b[k];
}
