// One step of all-pairs gravity, one body a thread, every other body read from global memory. The textbook baseline.
extern "C" __global__ void nbody(const float4* position, const float4* velocity, float4* new_position, float4* new_velocity, int n,
                                 float dt, float softening) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 p = position[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int j = 0; j < n; j++) {
        float4 q = position[j];
        float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
        float d2 = dx * dx + dy * dy + dz * dz + softening * softening;
        float w = q.w / (d2 * sqrtf(d2));
        ax += w * dx;
        ay += w * dy;
        az += w * dz;
    }
    float4 v = velocity[i];
    v.x += dt * ax;
    v.y += dt * ay;
    v.z += dt * az;
    new_velocity[i] = v;
    p.x += dt * v.x;
    p.y += dt * v.y;
    p.z += dt * v.z;
    new_position[i] = p;
}
