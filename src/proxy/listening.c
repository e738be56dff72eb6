/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "listening.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct listening *listening_find(struct gateway *gateway, const char *text)
{
    struct listening *listening = gateway->listening;
    while (listening != NULL && strcmp(listening->text, text) != 0) {
        listening = listening->next;
    }
    return listening;
}

static void listening_close(struct gateway *gateway, struct listening *listening)
{
    for (uint32_t i = 0; listening->fd != NULL && i < gateway->worker_count; i++) {
        if (listening->fd[i] >= 0) {
            close(listening->fd[i]);
        }
    }
    free(listening->fd);
    free(listening->text);
    free(listening);
}

/* Two sockets with SO_REUSEPORT would share an address that another gateway of the same user listens on: the first of
 * ours is bound without it, to find that out. */
static bool in_use(const union address_socket *address)
{
    int fd = listen_on(address, false);
    if (fd < 0) {
        return errno == EADDRINUSE;
    }
    close(fd);
    return false;
}

static bool open_sockets(struct gateway *gateway, struct listening *listening)
{
    bool local = listening->address.any.sa_family == AF_UNIX;
    bool given = listen_find(&gateway->handed, &listening->address) >= 0;
    listening->handed_over = given;
    int shared = given   ? listen_handed(&gateway->handed, &listening->address)
                 : local ? listen_on(&listening->address, false)
                         : -1;
    if ((given || local) && shared < 0) {
        return false;
    }
    if (!given && !local && in_use(&listening->address)) {
        errno = EADDRINUSE;
        return false;
    }
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        listening->fd[i] = shared < 0 ? listen_on(&listening->address, true)
                           : i == 0   ? shared
                                      : fcntl(shared, F_DUPFD_CLOEXEC, 0);
        if (listening->fd[i] < 0) {
            return false;
        }
    }
    return true;
}

static struct listening *listening_make(struct gateway *gateway, const char *text)
{
    struct listening *listening = calloc(1, sizeof *listening);
    struct address address;
    if (listening == NULL) {
        return NULL;
    }
    listening->text = strdup(text);
    listening->fd = malloc(gateway->worker_count * sizeof *listening->fd);
    if (listening->text == NULL || listening->fd == NULL) {
        listening_close(gateway, listening);
        return NULL;
    }
    for (uint32_t i = 0; i < gateway->worker_count; i++) {
        listening->fd[i] = -1;
    }
    bool parsed = address_parse(text, &address) && address.kind != ADDRESS_NAME;
    BECALM_ASSERT(parsed); /* the loader checked it */
    listening->address = address.socket;
    if (!open_sockets(gateway, listening)) {
        int error = errno;
        listening_close(gateway, listening);
        errno = error;
        return NULL;
    }
    return listening;
}

void listening_complain(struct becalm_diags *diags, const char *policy, const struct becalm_listener *listener,
                        const struct listening_complaint *complaint)
{
    bool written = listener->line > 0;
    becalm_diag_add(diags, BECALM_ERROR, written ? listener->file : policy, written ? listener->line : 1,
                    written ? listener->column : 1, complaint->code, "%s", complaint->why);
}

int listening_open(struct gateway *gateway, const char *const *addresses, uint32_t *which, char *why, size_t size)
{
    for (uint32_t i = 0; addresses[i] != NULL; i++) {
        if (listening_find(gateway, addresses[i]) != NULL) {
            continue;
        }
        struct listening *listening = listening_make(gateway, addresses[i]);
        if (listening == NULL) {
            const char *usual = strcmp(addresses[i], BECALM_LISTEN_DEFAULT) == 0 ? " (the default of listen)" : "";
            snprintf(why, size, "can't listen on %s%s: %s", addresses[i], usual, strerror(errno));
            *which = i;
            return BECALM_EIO;
        }
        pthread_mutex_lock(&gateway->lock);
        listening->next = gateway->listening;
        gateway->listening = listening;
        pthread_mutex_unlock(&gateway->lock);
    }
    return 0;
}

bool listening_names(const char *const *addresses, const char *text)
{
    for (uint32_t i = 0; addresses[i] != NULL; i++) {
        if (strcmp(addresses[i], text) == 0) {
            return true;
        }
    }
    return false;
}

void listening_forget(struct gateway *gateway, const char *const *addresses)
{
    pthread_mutex_lock(&gateway->lock);
    for (struct listening **link = &gateway->listening; *link != NULL;) {
        struct listening *listening = *link;
        if (listening_names(addresses, listening->text)) {
            link = &listening->next;
        } else {
            *link = listening->next;
            if (listening->address.any.sa_family == AF_UNIX && !listening->handed_over) {
                unlink(listening->address.local.sun_path);
            }
            listening_close(gateway, listening);
        }
    }
    pthread_mutex_unlock(&gateway->lock);
}

void listening_free(struct gateway *gateway)
{
    static const char *const none[] = {NULL};
    listening_forget(gateway, none);
}
