/* 3x3 convolution with zero padding: for every pixel, the nine taps that lie inside. The textbook baseline. */
void conv2d(const float *input, const float *weight, float *output, int h, int w) {
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            float sum = 0.0f;
            for (int dy = -1; dy <= 1; dy++) {
                for (int dx = -1; dx <= 1; dx++) {
                    int yy = y + dy, xx = x + dx;
                    if (yy < 0 || yy >= h || xx < 0 || xx >= w) continue;
                    sum += weight[(dy + 1) * 3 + dx + 1] * input[(long)yy * w + xx];
                }
            }
            output[(long)y * w + x] = sum;
        }
    }
}
