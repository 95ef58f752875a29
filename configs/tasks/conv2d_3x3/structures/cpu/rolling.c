/* ridgepoint
direction: rolling-sums
launch:
  - kernel: conv_rolling
    args: [input, weight, output, h, w]
params:
  VEC:     {values: [4, 8, 16]}              # lanes of one vector
  UNROLL:  {values: [1, 2, 4]}               # vectors of a strip
  BAND:    {values: [8, 32, 128, 512]}       # output rows a strip runs down before the next strip
  THREADS: {values: [1, 2, 4, 8]}
  GRAIN:   {values: [16384, 65536, 262144]}  # pixels that one more thread must be worth
default: {VEC: 8, UNROLL: 2, BAND: 8, THREADS: 2, GRAIN: 262144}
*/

/* A strip of VEC*UNROLL columns runs down a band of rows. Each input row is loaded once and added to the three output rows that it
 * touches, whose sums roll through registers. Columns next to the left and right edge, and what is left over, are scalar. */

typedef float vec __attribute__((vector_size(4 * VEC)));
typedef float vecu __attribute__((vector_size(4 * VEC), aligned(4), may_alias));

enum { STEP = VEC * UNROLL };

static inline vec load(const float *p) { return *(const vecu *)p; }

static float pixel(const float *input, const float *weight, int h, int w, int y, int x) {
    float sum = 0.0f;
    for (int dy = -1; dy <= 1; dy++) {
        for (int dx = -1; dx <= 1; dx++) {
            int yy = y + dy, xx = x + dx;
            if (yy >= 0 && yy < h && xx >= 0 && xx < w) sum += weight[3 * dy + dx + 4] * input[(long)yy * w + xx];
        }
    }
    return sum;
}

/* Output rows [top, bottom) of the columns [x, x + STEP), all of which have both neighbours. */
static void strip(const float *input, const float *weight, float *output, int h, int w, int top, int bottom, int x) {
    vec above[UNROLL], here[UNROLL]; /* sums of the rows y-1 and y, when input row y arrives */
    float k[9];                      /* a copy that no store can touch */
    for (int i = 0; i < 9; i++) k[i] = weight[i];
    for (int u = 0; u < UNROLL; u++) above[u] = here[u] = (vec){0};
    int from = top > 0 ? top - 1 : 0, to = bottom < h ? bottom + 1 : h;
    for (int y = from; y < to; y++) {
        const float *row = input + (long)y * w + x;
        float *out = output + (long)(y - 1) * w + x;
#pragma GCC unroll 4
        for (int u = 0; u < UNROLL; u++) {
            vec left = load(row + u * VEC - 1), mid = load(row + u * VEC), right = load(row + u * VEC + 1);
            vec done = above[u] + left * k[6];
            done += mid * k[7];
            done += right * k[8];
            above[u] = here[u] + left * k[3];
            above[u] += mid * k[4];
            above[u] += right * k[5];
            here[u] = left * k[0] + mid * k[1];
            here[u] += right * k[2];
            if (y > top) *(vecu *)(out + u * VEC) = done;
        }
    }
    if (bottom == h) { /* the last row has nothing below it */
        for (int u = 0; u < UNROLL; u++) *(vecu *)(output + (long)(h - 1) * w + x + u * VEC) = above[u];
    }
}

void conv_rolling(const float *input, const float *weight, float *output, int h, int w) {
    long share = (long)h * w / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    int bands = (h + BAND - 1) / BAND;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int band = 0; band < bands; band++) {
        int top = band * BAND, bottom = h - top < BAND ? h : top + BAND, x = 1;
        for (; x + STEP < w; x += STEP) strip(input, weight, output, h, w, top, bottom, x);
        for (int y = top; y < bottom; y++) {
            output[(long)y * w] = pixel(input, weight, h, w, y, 0);
            for (int k = x; k < w; k++) output[(long)y * w + k] = pixel(input, weight, h, w, y, k);
        }
    }
}
