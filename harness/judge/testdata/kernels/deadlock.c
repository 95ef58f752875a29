/* Takes a lock and keeps it: the second call waits. */
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void vadd(const float *a, const float *b, float *c, int n) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
}
