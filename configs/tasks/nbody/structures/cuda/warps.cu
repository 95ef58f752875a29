/* ridgepoint
direction: lanes-over-sources
launch:
  - kernel: nbody_warps
    grid:  ["ceil_div(n, BODIES * WARPS)"]
    block: [32, WARPS]
    args:  [position, velocity, new_position, new_velocity, n, dt, softening]
params:
  WARPS:  {values: [1, 2, 4, 8, 16]}
  BODIES: {values: [1, 2, 4, 8]}        # bodies of a warp, which every lane knows
  AHEAD:  {values: [1, 2, 4]}           # bodies that a lane loads before it uses the first
default: {WARPS: 1, BODIES: 2, AHEAD: 1}
*/

// A warp owns a few bodies; its lanes share the pull of all others, which they read side by side, and add up by shuffles. No shared
// memory and no barrier.

__device__ __forceinline__ float inverse_root(float x) {  // one unit in the last place; x is a normal number
#if defined(__CUDA_ARCH__) && !defined(RIDGEPOINT_EMULATED)
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / sqrtf(x);
#endif
}

__device__ __forceinline__ float warp_sum(float v) {
    for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) nbody_warps(const float4* __restrict__ position,
                                                                     const float4* __restrict__ velocity,
                                                                     float4* __restrict__ new_position,
                                                                     float4* __restrict__ new_velocity, int n, float dt,
                                                                     float softening) {
    int lane = threadIdx.x, first = (blockIdx.x * WARPS + threadIdx.y) * BODIES;
    float e2 = softening * softening;
    float3 mine[BODIES], pull[BODIES];
#pragma unroll
    for (int b = 0; b < BODIES; b++) {
        float4 p = position[min(first + b, n - 1)];
        mine[b] = make_float3(p.x, p.y, p.z);
        pull[b] = make_float3(0.0f, 0.0f, 0.0f);
    }
    for (int j = lane; j < n; j += 32 * AHEAD) {
        float4 q[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
            q[a] = j + 32 * a < n ? position[j + 32 * a] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
#pragma unroll
        for (int a = 0; a < AHEAD; a++) {
#pragma unroll
            for (int b = 0; b < BODIES; b++) {
                float dx = q[a].x - mine[b].x, dy = q[a].y - mine[b].y, dz = q[a].z - mine[b].z;
                float inverse = inverse_root(dx * dx + (dy * dy + (dz * dz + e2)));
                float w = q[a].w * inverse * (inverse * inverse);
                pull[b].x += w * dx, pull[b].y += w * dy, pull[b].z += w * dz;
            }
        }
    }
#pragma unroll
    for (int b = 0; b < BODIES; b++) {
        float3 sum = make_float3(warp_sum(pull[b].x), warp_sum(pull[b].y), warp_sum(pull[b].z));
        int i = first + b;
        if (lane < 1 && i < n) {
            float4 p = position[i], v = velocity[i];
            v.x += dt * sum.x, v.y += dt * sum.y, v.z += dt * sum.z;
            p.x += dt * v.x, p.y += dt * v.y, p.z += dt * v.z;
            new_velocity[i] = v;
            new_position[i] = p;
        }
    }
}
