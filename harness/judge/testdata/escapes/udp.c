/* Sends a datagram. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sys/socket.h>
void vadd(const float *a, const float *b, float *c, int n) {
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
    struct sockaddr_in to = {AF_INET, htons(@PORT@), {htonl(INADDR_LOOPBACK)}};
    sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (struct sockaddr *)&to, sizeof to);
}
