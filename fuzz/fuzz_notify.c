/* SPDX-License-Identifier: MIT */
/* The environment variables of a service manager: LISTEN_FDS and WATCHDOG_USEC are numbers within their bounds, or are
 * ignored. */
#define _GNU_SOURCE
#include "gateway/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char pid[24];
    int first = 0;
    char *text = malloc(size + 1);
    BECALM_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", text, 1);
    setenv("WATCHDOG_USEC", text, 1);
    bool number = text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
    uint32_t count = notify_descriptors(&first);
    BECALM_ASSERT(first == 3 && count <= 256 && (number || count == 0));
    becalm_ns time = notify_watchdog();
    BECALM_ASSERT(time == BECALM_NEVER || (number && time > 0 && time <= 900 * BECALM_S));
    setenv("LISTEN_PID", text, 1);
    setenv("LISTEN_FDS", "1", 1);
    BECALM_ASSERT(notify_descriptors(&first) == (number && strtoull(text, NULL, 10) == (unsigned long long)getpid()));
    free(text);
    return 0;
}
