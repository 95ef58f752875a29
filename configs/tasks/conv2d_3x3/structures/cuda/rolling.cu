/* ridgepoint
direction: register-rolling
launch:
  - kernel: conv_rolling
    grid:  ["ceil_div(w, 4 * TX)", "ceil_div(h, ROWS * TY)"]
    block: [TX, TY]
    args:  [input, weight, output, h, w]
params:
  TX:    {values: [32, 64, 128, 256]}     # threads side by side, four columns each
  TY:    {values: [1, 2, 4, 8]}           # threads one below the other
  ROWS:  {values: [1, 2, 4, 8, 16, 32]}   # output rows of a thread: its window rolls down them
  BATCH: {values: [1, 2, 4, 8]}           # rows asked for before the first is used
  LOAD:  {values: [0, 1]}                 # 1: loads are marked as used once
  STORE: {values: [0, 1]}                 # 1: stores are marked as not used again
constraints: ["TX * TY <= 1024", "BATCH <= ROWS"]
default: {TX: 128, TY: 1, ROWS: 4, BATCH: 4, LOAD: 0, STORE: 1}
*/

// A thread owns four columns and rolls down ROWS rows: every input row is read once, as a float4 with one neighbour on each side from
// the next lanes, and added to the sums of the three output rows that it touches. A batch of rows is asked for before the first is used.

#define FULL 0xffffffffu

struct Raw {
    float4 q;    // four columns
    float edge;  // lane 0: the column to the left of them; lane 31: to the right
};

template <bool ALIGNED> __device__ __forceinline__ float4 quad(const float* row, int x, int w) {
    float4 q = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (ALIGNED) {
        const float4* p = reinterpret_cast<const float4*>(row + x);
        if (x < w) q = LOAD ? __ldcs(p) : *p;
    } else {
        if (x < w) q.x = row[x];
        if (x + 1 < w) q.y = row[x + 1];
        if (x + 2 < w) q.z = row[x + 2];
        if (x + 3 < w) q.w = row[x + 3];
    }
    return q;
}

// Row y around columns x to x+3; zeros outside the image.
template <bool ALIGNED> __device__ __forceinline__ Raw fetch(const float* input, int y, int x, int h, int w) {
    Raw r;
    int lane = threadIdx.x & 31, side = lane < 1 ? x - 1 : x + 4;
    const float* row = input + (size_t)min(max(y, 0), h - 1) * w;
    int width = y >= 0 && y < h ? w : 0;  // a row outside has no columns
    r.q = quad<ALIGNED>(row, x, width);
    r.edge = 0.0f;
    if ((lane < 1 || lane > 30) && side >= 0 && side < width) r.edge = row[side];
    return r;
}

// The row's share of three output rows: sums of row y-1 (finished by it), y and y+1.
__device__ __forceinline__ void add(const Raw& r, const float* k, float* above, float* here, float* below) {
    int lane = threadIdx.x & 31;
    float left = __shfl_up_sync(FULL, r.q.w, 1), right = __shfl_down_sync(FULL, r.q.x, 1);
    float v[6] = {lane < 1 ? r.edge : left, r.q.x, r.q.y, r.q.z, r.q.w, lane > 30 ? r.edge : right};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        above[i] += k[6] * v[i] + (k[7] * v[i + 1] + k[8] * v[i + 2]);
        here[i] += k[3] * v[i] + (k[4] * v[i + 1] + k[5] * v[i + 2]);
        below[i] = k[0] * v[i] + (k[1] * v[i + 1] + k[2] * v[i + 2]);
    }
}

template <bool ALIGNED> __device__ __forceinline__ void write(float* row, const float* v, int x, int w) {
    if (ALIGNED) {
        float4* at = reinterpret_cast<float4*>(row + x);
        if (x >= w) return;
        if (STORE) __stcs(at, make_float4(v[0], v[1], v[2], v[3]));
        else *at = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (x + i < w) row[x + i] = v[i];
        }
    }
}

template <bool ALIGNED> __device__ __forceinline__ void roll(const float* input, const float* weight, float* output, int h, int w) {
    int x = 4 * (blockIdx.x * TX + threadIdx.x), y0 = (blockIdx.y * TY + threadIdx.y) * ROWS;
    Raw head[2] = {fetch<ALIGNED>(input, y0 - 1, x, h, w), fetch<ALIGNED>(input, y0, x, h, w)};
    Raw rows[BATCH];
#pragma unroll
    for (int u = 0; u < BATCH; u++) rows[u] = fetch<ALIGNED>(input, y0 + u + 1, x, h, w);
    float k[9], above[4] = {}, here[4] = {}, below[4];  // sums of the rows y-1, y and y+1, when row y arrives
#pragma unroll
    for (int i = 0; i < 9; i++) k[i] = weight[i];
    float unused[4] = {};
    add(head[0], k, unused, unused, above);
    add(head[1], k, unused, above, here);
    for (int y = y0; y < y0 + ROWS; y += BATCH) {
        if (y > y0) {
#pragma unroll
            for (int u = 0; u < BATCH; u++) rows[u] = fetch<ALIGNED>(input, y + u + 1, x, h, w);
        }
#pragma unroll
        for (int u = 0; u < BATCH; u++) {
            add(rows[u], k, above, here, below);
            if (y + u < h) write<ALIGNED>(output + (size_t)(y + u) * w, above, x, w);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                above[i] = here[i];
                here[i] = below[i];
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(TX * TY) conv_rolling(const float* __restrict__ input, const float* __restrict__ weight,
                                                                   float* __restrict__ output, int h, int w) {
    if ((w & 3) < 1) roll<true>(input, weight, output, h, w);
    else roll<false>(input, weight, output, h, w);
}
