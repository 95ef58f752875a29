/* ridgepoint
direction: register-rolling
launch:
  - kernel: conv_rolling
    grid:  ["ceil_div(w, 4 * TX)", "ceil_div(h, ROWS * TY)"]
    block: [TX, TY]
    args:  [input, weight, output, h, w]
params:
  TX:     {values: [32, 64, 128, 256]}       # threads side by side, four columns each
  TY:     {values: [1, 2, 4, 8]}             # threads one below the other
  ROWS:   {values: [1, 2, 4, 8, 16, 32]}     # output rows of a thread: its window rolls down them
  UNROLL: {values: [1, 2, 4, 8]}             # rows in flight
  STORE:  {values: [0, 1]}                   # 1: stores are marked as not used again
constraints: ["TX * TY <= 1024", "UNROLL <= ROWS"]
default: {TX: 32, TY: 4, ROWS: 8, UNROLL: 4, STORE: 1}
*/

// A thread owns four columns and rolls down ROWS rows: every input row is read once, as a float4 with one neighbour on each side from
// the next lanes, and added to the sums of the three output rows that it touches.

#define FULL 0xffffffffu

struct Row {
    float v[6];  // left neighbour, four columns, right neighbour
};

__device__ __forceinline__ float4 quad(const float* row, int x, int w, bool aligned) {
    float4 q = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (x >= w) return q;
    if (aligned) return *reinterpret_cast<const float4*>(row + x);
    q.x = row[x];
    if (x + 1 < w) q.y = row[x + 1];
    if (x + 2 < w) q.z = row[x + 2];
    if (x + 3 < w) q.w = row[x + 3];
    return q;
}

// Row y around columns x to x+3; zeros outside the image. All lanes of a warp call it together: lanes lie side by side.
__device__ __forceinline__ Row fetch(const float* input, int y, int x, int h, int w, bool aligned) {
    Row r;
    bool inside = y >= 0 && y < h;
    const float* row = input + (size_t)(inside ? y : 0) * w;
    float4 q = inside ? quad(row, x, w, aligned) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float left = __shfl_up_sync(FULL, q.w, 1), right = __shfl_down_sync(FULL, q.x, 1);
    int lane = threadIdx.x & 31;
    if (lane < 1) left = inside && x > 0 && x - 1 < w ? row[x - 1] : 0.0f;
    if (lane > 30) right = inside && x + 4 < w ? row[x + 4] : 0.0f;
    r.v[0] = left, r.v[1] = q.x, r.v[2] = q.y, r.v[3] = q.z, r.v[4] = q.w, r.v[5] = right;
    return r;
}

__device__ __forceinline__ void add(float* sum, const Row& r, const float* k) {
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] += k[0] * r.v[i] + (k[1] * r.v[i + 1] + k[2] * r.v[i + 2]);
}

__device__ __forceinline__ void write(float* row, const float* v, int x, int w, bool aligned) {
    if (x >= w) return;
    if (aligned) {
        float4* at = reinterpret_cast<float4*>(row + x);
        if (STORE) __stcs(at, make_float4(v[0], v[1], v[2], v[3]));
        else *at = make_float4(v[0], v[1], v[2], v[3]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (x + i < w) row[x + i] = v[i];
    }
}

extern "C" __global__ void __launch_bounds__(TX * TY) conv_rolling(const float* __restrict__ input, const float* __restrict__ weight,
                                                                   float* __restrict__ output, int h, int w) {
    int x = 4 * (blockIdx.x * TX + threadIdx.x), y0 = (blockIdx.y * TY + threadIdx.y) * ROWS;
    bool aligned = (w & 3) < 1;
    float k[9];
#pragma unroll
    for (int i = 0; i < 9; i++) k[i] = weight[i];
    float above[4] = {0.0f, 0.0f, 0.0f, 0.0f}, here[4] = {0.0f, 0.0f, 0.0f, 0.0f};  // sums of the rows y-1 and y, when row y arrives
    Row first = fetch(input, y0 - 1, x, h, w, aligned), second = fetch(input, y0, x, h, w, aligned);
    add(above, first, k);
    add(above, second, k + 3);
    add(here, second, k);
    for (int y = y0; y < y0 + ROWS; y += UNROLL) {
        Row r[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) r[u] = fetch(input, y + u + 1, x, h, w, aligned);
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            add(above, r[u], k + 6);
            if (y + u < h) write(output + (size_t)(y + u) * w, above, x, w, aligned);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                above[i] = here[i];
                here[i] = 0.0f;
            }
            add(above, r[u], k + 3);
            add(here, r[u], k);
        }
    }
}
