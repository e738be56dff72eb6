/* SPDX-License-Identifier: MIT */
/* A list of networks, one a line, behind 16 bytes of a peer's address. Networks that the loader accepts become a list,
 * and an IPv4 address is in the list exactly if its form inside of IPv6 is. */
#define _GNU_SOURCE
#include "origin/trust.h"

#include "policy/value.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define NETWORKS_MAX 8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t networks_read(char *text, const char *networks[NETWORKS_MAX + 1])
{
    size_t count = 0;
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line != NULL && count < NETWORKS_MAX;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strcmp(line, "unix") == 0 || value_cidr(line) || value_peer_name(line)) {
            networks[count++] = line;
        }
    }
    networks[count] = NULL;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_addr.s6_addr = {[10] = 0xff, [11] = 0xff}};
    const struct sockaddr local = {.sa_family = AF_UNIX};
    const char *networks[NETWORKS_MAX + 1];
    if (size < 16) {
        return 0;
    }
    memcpy(&v4.sin_addr, data, 4);
    memcpy(mapped.sin6_addr.s6_addr + 12, data, 4);
    memcpy(&v6.sin6_addr, data, 16);
    char *text = malloc(size - 16 + 1);
    BECALM_ASSERT(text != NULL);
    memcpy(text, data + 16, size - 16);
    text[size - 16] = '\0';
    size_t count = networks_read(text, networks);
    struct trust *trust = trust_make(networks);
    BECALM_ASSERT(trust != NULL);
    bool is_in = trust_has(trust, (const struct sockaddr *)&v4);
    BECALM_ASSERT(is_in == trust_has(trust, (const struct sockaddr *)&mapped));
    bool any = trust_has(trust, (const struct sockaddr *)&v6) || trust_has(trust, &local) || is_in;
    BECALM_ASSERT(count > 0 || !any);
    trust_free(trust);
    free(text);
    return 0;
}
