// The last block finds itself by a counter that starts with whatever is there, and that it sets back for the next launch.
/* ridgepoint
direction: last-block
launch:
  - {kernel: total, grid: [4], block: [1], args: [x, y, partial, ticket, n]}
workspace: {partial: {shape: [4], dtype: float32, init: none}, ticket: {shape: [1], dtype: int32, init: none}}
*/
extern "C" __global__ void total(const float* x, float* y, float* partial, int* ticket, int n) {
    float sum = 0.f;
    for (int i = blockIdx.x; i < n; i += 4) sum += x[i];
    partial[blockIdx.x] = sum;
    __threadfence();
    if (atomicAdd(ticket, 1) != 3) return;
    *ticket = 0;
    y[0] = ((volatile float*)partial)[0] + ((volatile float*)partial)[1] + ((volatile float*)partial)[2] + ((volatile float*)partial)[3];
}
