/* ridgepoint
direction: shared-tiles
launch:
  - kernel: nbody_tiles
    grid:  ["ceil_div(n, TX * BODIES)"]
    block: [TX, TY]
    args:  [position, velocity, new_position, new_velocity, n, dt, softening]
params:
  TX:     {values: [32, 64, 128, 256]}     # threads side by side, each with its own bodies
  TY:     {values: [1, 2, 4, 8, 16, 32]}   # threads that share the others' pull on the same bodies
  BODIES: {values: [1, 2, 4]}              # bodies of a thread
  TILE:   {values: [8, 16, 32, 64]}        # bodies that a thread takes of one tile in shared memory
  UNROLL: {values: [1, 4, 8]}              # of the walk over a tile
constraints: ["TX * TY <= 1024", "TY * TILE <= 1024", "UNROLL <= TILE", "TX * TY >= 64"]
default: {TX: 32, TY: 16, BODIES: 1, TILE: 64, UNROLL: 8}
*/

// A tile of bodies is put into shared memory; every row of threads takes its stretch of it. At the end the rows' sums meet in shared
// memory. Bodies past the end have no mass.

#define TILE_BODIES (TY * TILE)
#define THREADS (TX * TY)

__device__ __forceinline__ float inverse_root(float x) {  // one unit in the last place; x is a normal number
#if defined(__CUDA_ARCH__) && !defined(RIDGEPOINT_EMULATED)
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / sqrtf(x);
#endif
}

__device__ __forceinline__ void move(const float4* position, const float4* velocity, float4* new_position, float4* new_velocity, int i,
                                     float3 pull, float dt) {
    float4 p = position[i], v = velocity[i];
    v.x += dt * pull.x, v.y += dt * pull.y, v.z += dt * pull.z;
    p.x += dt * v.x, p.y += dt * v.y, p.z += dt * v.z;
    new_velocity[i] = v;
    new_position[i] = p;
}

extern "C" __global__ void __launch_bounds__(THREADS) nbody_tiles(const float4* __restrict__ position,
                                                                  const float4* __restrict__ velocity,
                                                                  float4* __restrict__ new_position,
                                                                  float4* __restrict__ new_velocity, int n, float dt, float softening) {
    __shared__ float4 tile[TILE_BODIES];
    __shared__ float3 sums[TY > 1 ? THREADS : 1];
    int tx = threadIdx.x, ty = threadIdx.y, flat = ty * TX + tx, first = blockIdx.x * TX * BODIES + tx;
    float e2 = softening * softening;
    float4 mine[BODIES];
    float3 pull[BODIES];
#pragma unroll
    for (int b = 0; b < BODIES; b++) {
        mine[b] = position[min(first + b * TX, n - 1)];
        pull[b] = make_float3(0.0f, 0.0f, 0.0f);
    }
    for (int from = 0; from < n; from += TILE_BODIES) {
        for (int i = flat; i < TILE_BODIES; i += THREADS) {
            tile[i] = from + i < n ? position[from + i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
        __syncthreads();
#pragma unroll UNROLL
        for (int j = 0; j < TILE; j++) {
            float4 q = tile[ty * TILE + j];
#pragma unroll
            for (int b = 0; b < BODIES; b++) {
                float dx = q.x - mine[b].x, dy = q.y - mine[b].y, dz = q.z - mine[b].z;
                float inverse = inverse_root(dx * dx + (dy * dy + (dz * dz + e2)));
                float w = q.w * inverse * (inverse * inverse);
                pull[b].x += w * dx, pull[b].y += w * dy, pull[b].z += w * dz;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int b = 0; b < BODIES; b++) {
        if (TY > 1) {
            sums[flat] = pull[b];
            __syncthreads();
            for (int rows = TY / 2; rows > 0; rows /= 2) {
                if (ty < rows) {
                    float3 o = sums[flat + rows * TX];
                    pull[b].x += o.x, pull[b].y += o.y, pull[b].z += o.z;
                    sums[flat] = pull[b];
                }
                __syncthreads();
            }
        }
        int i = first + b * TX;
        if (ty < 1 && i < n) move(position, velocity, new_position, new_velocity, i, pull[b], dt);
    }
}
