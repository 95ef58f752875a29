/* Reaches a listener on loopback. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    struct sockaddr_in to = {AF_INET, htons(@PORT@), {htonl(INADDR_LOOPBACK)}};
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (struct sockaddr *)&to, sizeof to) == 0) write(s, "x", 1);
}
