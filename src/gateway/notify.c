/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "notify.h"

#include "policy/value.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define FIRST_DESCRIPTOR 3
#define DESCRIPTORS_MAX  256u

void notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof address.sun_path) {
        return;
    }
    size_t length = strlen(path);
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; /* an abstract name */
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address, size);
    (void)sent; /* nothing to be done about it */
    close(fd);
}

void notify_reloading(void)
{
    struct timespec now;
    char state[80];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)now.tv_sec * 1000000 + (long long)now.tv_nsec / 1000);
    notify(state);
}

/* The number in an environment variable; 0: the variable is missing or is no number. */
static uint64_t number_in(const char *variable)
{
    const char *text = getenv(variable);
    uint64_t number = 0;
    return text != NULL && value_integer(text, &number) ? number : 0;
}

static bool for_this_process(const char *variable)
{
    return number_in(variable) == (uint64_t)getpid();
}

becalm_ns notify_watchdog(void)
{
    uint64_t usec = number_in("WATCHDOG_USEC");
    if (getenv("WATCHDOG_PID") != NULL && !for_this_process("WATCHDOG_PID")) {
        return BECALM_NEVER;
    }
    return usec == 0 || usec > 3600000000u ? BECALM_NEVER : usec * BECALM_US / 4;
}

uint32_t notify_descriptors(int *first)
{
    uint64_t count = number_in("LISTEN_FDS");
    *first = FIRST_DESCRIPTOR;
    if (!for_this_process("LISTEN_PID")) {
        return 0;
    }
    return count > DESCRIPTORS_MAX ? DESCRIPTORS_MAX : (uint32_t)count;
}
