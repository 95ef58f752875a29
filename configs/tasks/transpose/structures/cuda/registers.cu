/* ridgepoint
direction: registers-only
launch:
  - kernel: transpose_registers
    grid:  ["ceil_div(cols, 4 * LANES * WARPS_C)", "ceil_div(rows, 128 // LANES * WARPS_R * STEPS)"]
    block: [32, WARPS_C, WARPS_R]
    args:  [input, output, rows, cols]
params:
  LANES:   {values: [2, 4, 8, 16]}     # lanes of a warp along the columns of the input; the others along its rows
  WARPS_C: {values: [1, 2, 4]}         # warps of a block along the columns
  WARPS_R: {values: [1, 2, 4, 8]}      # and along the rows
  STEPS:   {values: [1, 2, 4]}         # 4x4 blocks that a thread has in flight, one below the other
  STORE:   {values: [0, 1]}            # 1: stores are marked as not used again
constraints: ["WARPS_C * WARPS_R <= 16"]
default: {LANES: 4, WARPS_C: 2, WARPS_R: 2, STEPS: 1, STORE: 0}
*/

// No shared memory and no barrier: a thread turns 4x4 blocks in its registers. Lanes are laid so that a warp's reads and writes both
// fill sectors of 32 bytes, which is what memory moves.

#define ROW_LANES (32 / LANES)

extern "C" __global__ void __launch_bounds__(32 * WARPS_C * WARPS_R) transpose_registers(const float* __restrict__ input,
                                                                                         float* __restrict__ output, int rows,
                                                                                         int cols) {
    int lane = threadIdx.x;
    int c = 4 * ((blockIdx.x * WARPS_C + threadIdx.y) * LANES + lane % LANES);
    int r = 4 * ((blockIdx.y * WARPS_R + threadIdx.z) * STEPS * ROW_LANES + lane / LANES);
    if (((rows | cols) & 3) > 0) {  // rows start anywhere: single floats
        for (int s = 0; s < STEPS; s++) {
            for (int i = 0; i < 16; i++) {
                int rr = r + 4 * ROW_LANES * s + i / 4, cc = c + i % 4;
                if (rr < rows && cc < cols) output[(size_t)cc * rows + rr] = input[(size_t)rr * cols + cc];
            }
        }
        return;
    }
    if (c >= cols) return;
    float4 v[STEPS][4];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        int rr = r + 4 * ROW_LANES * s;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (rr < rows) v[s][j] = *reinterpret_cast<const float4*>(input + (size_t)(rr + j) * cols + c);
        }
    }
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        int rr = r + 4 * ROW_LANES * s;
        if (rr >= rows) return;
        float4 turned[4] = {make_float4(v[s][0].x, v[s][1].x, v[s][2].x, v[s][3].x),
                            make_float4(v[s][0].y, v[s][1].y, v[s][2].y, v[s][3].y),
                            make_float4(v[s][0].z, v[s][1].z, v[s][2].z, v[s][3].z),
                            make_float4(v[s][0].w, v[s][1].w, v[s][2].w, v[s][3].w)};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float4* at = reinterpret_cast<float4*>(output + (size_t)(c + j) * rows + rr);
            if (STORE) __stcs(at, turned[j]);
            else *at = turned[j];
        }
    }
}
