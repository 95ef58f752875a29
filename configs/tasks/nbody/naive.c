/* One step of all-pairs gravity, body by body. The textbook baseline. */
#include <math.h>

void nbody(const float *position, const float *velocity, float *new_position, float *new_velocity, int n, float dt,
           float softening) {
    for (int i = 0; i < n; i++) {
        const float *p = position + 4L * i;
        float ax = 0.0f, ay = 0.0f, az = 0.0f;
        for (int j = 0; j < n; j++) {
            const float *q = position + 4L * j;
            float dx = q[0] - p[0], dy = q[1] - p[1], dz = q[2] - p[2];
            float d2 = dx * dx + dy * dy + dz * dz + softening * softening;
            float w = q[3] / (d2 * sqrtf(d2));
            ax += w * dx;
            ay += w * dy;
            az += w * dz;
        }
        const float *v = velocity + 4L * i;
        float *u = new_velocity + 4L * i, *s = new_position + 4L * i;
        u[0] = v[0] + dt * ax;
        u[1] = v[1] + dt * ay;
        u[2] = v[2] + dt * az;
        u[3] = v[3];
        s[0] = p[0] + dt * u[0];
        s[1] = p[1] + dt * u[1];
        s[2] = p[2] + dt * u[2];
        s[3] = p[3];
    }
}
