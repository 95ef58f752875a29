// Four numbers a step, the tail one by one, a grid of fixed size.
/* ridgepoint
direction: vectors
launch:
  - {kernel: vadd, grid: [7], block: [128], args: [a, b, c, n]}
*/
extern "C" __global__ void vadd(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    for (int i = at; i < n / 4; i += step) {
        float4 p = reinterpret_cast<const float4*>(a)[i], q = reinterpret_cast<const float4*>(b)[i];
        reinterpret_cast<float4*>(c)[i] = make_float4(p.x + q.x, p.y + q.y, p.z + q.z, p.w + q.w);
    }
    for (int i = n / 4 * 4 + at; i < n; i += step) c[i] = a[i] + b[i];
}
