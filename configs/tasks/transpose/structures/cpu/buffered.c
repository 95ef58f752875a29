/* ridgepoint
direction: tile-buffer
launch:
  - kernel: transpose_buffered
    args: [input, output, rows, cols]
params:
  TILE_R:  {values: [16, 32, 64, 128]}
  TILE_C:  {values: [8, 16, 32, 64]}
  PAD:     {values: [0, 1, 4, 8]}             # floats added to a line of the buffer, against lines that share a cache set
  STREAM:  {values: [0, 1048576, 4194304]}    # elements from which results go round the caches; 0: never
  THREADS: {values: [1, 2, 4, 8]}
  GRAIN:   {values: [16384, 65536, 262144]}   # elements that one more thread must be worth
default: {TILE_R: 64, TILE_C: 32, PAD: 4, STREAM: 1048576, THREADS: 2, GRAIN: 262144}
*/

/* A tile is scattered into a small buffer that stays in the nearest cache, then written as whole stretches of output rows: the
 * large strides of the output cost one visit a tile line and not one an element. */

#if defined(__SSE__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(16)));
typedef float vecu __attribute__((vector_size(16), aligned(4), may_alias));

enum { PITCH = TILE_R + PAD };

static inline void fill(float *buffer, const float *x, long cols, int height, int width) {
    for (int r = 0; r < height; r++) {
        for (int c = 0; c < width; c++) buffer[c * PITCH + r] = x[r * cols + c];
    }
}

static inline void write_line(float *y, const float *line, int count, int past_caches) {
    int i = 0;
#if defined(__SSE__)
    if (past_caches) {
        for (; i < count && ((unsigned long)(y + i) & 15) != 0; i++) y[i] = line[i];
        for (; i + 4 <= count; i += 4) _mm_stream_ps(y + i, _mm_loadu_ps(line + i));
    }
#else
    (void)past_caches;
#endif
    for (; i + 4 <= count; i += 4) *(vecu *)(y + i) = *(const vecu *)(line + i);
    for (; i < count; i++) y[i] = line[i];
}

void transpose_buffered(const float *input, float *output, int rows, int cols) {
    long elements = (long)rows * cols, share = elements / GRAIN;
    int threads = share < 1 ? 1 : share < THREADS ? (int)share : THREADS;
    int strips = (rows + TILE_R - 1) / TILE_R, past_caches = STREAM > 0 && elements >= STREAM;
    (void)threads; /* unused where the compiler has no OpenMP */
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        float buffer[TILE_C * PITCH] __attribute__((aligned(64)));
#pragma omp for schedule(static)
        for (int s = 0; s < strips; s++) {
            int r = s * TILE_R, height = rows - r < TILE_R ? rows - r : TILE_R;
            for (int c = 0; c < cols; c += TILE_C) {
                int width = cols - c < TILE_C ? cols - c : TILE_C;
                const float *x = input + (long)r * cols + c;
                if (height == TILE_R && width == TILE_C) {
                    fill(buffer, x, cols, TILE_R, TILE_C);
                } else {
                    fill(buffer, x, cols, height, width);
                }
                for (int i = 0; i < width; i++) write_line(output + (long)(c + i) * rows + r, buffer + i * PITCH, height, past_caches);
            }
        }
#if defined(__SSE__)
        if (past_caches) _mm_sfence();
#endif
    }
}
