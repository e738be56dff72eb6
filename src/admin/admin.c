/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "admin.h"

#include "admin_internal.h"

#include "proxy/gateway_shared.h"
#include "proxy/listening.h"

#include "container.h"
#include "policy/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN_MAX 4096u
#define PAUSE     (50 * BECALM_MS) /* out of descriptors: looks again */
#define TURN      16               /* connections taken in before others have their turn */

struct admin_listener {
    struct source source; /* first */
    struct admin *admin;
    char *text; /* as in the policy */
    union address_socket address;
    bool handed_over; /* by systemd, which owns the socket's file */
    bool watched;
};

/* Taking in. */

static void listener_pause(struct admin_listener *listener)
{
    struct loop *loop = listener->admin->place.loop;
    if (listener->watched) { /* the level would wake us at once, again and again */
        loop_forget(loop, &listener->source);
        listener->watched = false;
    }
    wheel_arm(&loop->wheel, &listener->admin->pause, becalm_ns_after(loop->now, PAUSE));
}

static int take(struct admin_listener *listener)
{
    int fd;
    do {
        fd = accept4(listener->source.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    return fd;
}

/* Accepts a connection with the descriptor of one that does nothing. False: there is none, or a worker was
 * faster.
 */
static bool take_from_idle(struct admin_listener *listener)
{
    int fd = admin_conns_give_up(listener->admin) ? take(listener) : -1;
    if (fd >= 0) {
        admin_conn_accept(listener->admin, fd, false);
    }
    return fd >= 0;
}

/* An eventfd, because in a restricted file system not even /dev/null may be there to open. */
static void reserve_open(struct admin *admin)
{
    if (admin->reserve_fd < 0) {
        admin->reserve_fd = eventfd(0, EFD_CLOEXEC);
    }
}

/* Accepts a connection with the descriptor of the reserve. If no connection waits any more, the descriptor becomes the
 * reserve again: without a free descriptor accept4() does not check whether one waits. The demonstration's address has
 * no gateway, and no other thread accepts there. */
static int take_with_reserve(struct admin_listener *listener)
{
    struct admin *admin = listener->admin;
    struct gateway *gateway = admin->place.gateway;
    if (gateway != NULL) {
        pthread_mutex_lock(&gateway->accepting);
    }
    close(admin->reserve_fd);
    admin->reserve_fd = -1;
    int fd = take(listener);
    if (fd < 0) {
        reserve_open(admin);
    }
    if (gateway != NULL) {
        pthread_mutex_unlock(&gateway->accepting);
    }
    return fd;
}

/* No descriptor is left: gives up the reserve to answer one. Other connections wait until it is back. */
static void take_by_reserve(struct admin_listener *listener)
{
    struct admin *admin = listener->admin;
    if (admin->reserve_fd >= 0) {
        int fd = take_with_reserve(listener);
        if (fd >= 0) {
            admin_conn_accept(admin, fd, true);
        }
    }
    listener_pause(listener);
}

static void listener_ready(struct source *source, uint32_t events)
{
    struct admin_listener *listener = CONTAINER_OF(source, struct admin_listener, source);
    struct admin *admin = listener->admin;
    (void)events;
    for (int i = 0; i < TURN; i++) {
        int fd = take(listener);
        if (fd >= 0) {
            admin_conns_make_room(admin);
            admin_conn_accept(admin, fd, false);
        } else if (errno == EMFILE || errno == ENFILE) {
            if (!take_from_idle(listener)) {
                take_by_reserve(listener);
                return;
            }
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return; /* no connection waits any more */
        } else {
            listener_pause(listener);
            return;
        }
    }
}

/* The connection's descriptor becomes the reserve again without ever being free: a worker could take a free descriptor
 * for a client. The file behind the reserve does not matter: here it is the loop's own. */
void admin_reserve_back(struct admin *admin, struct source *source)
{
    struct loop *loop = admin->place.loop;
    loop_forget(loop, source);
    if (dup3(loop->epoll_fd, source->fd, O_CLOEXEC) >= 0) {
        admin->reserve_fd = source->fd;
        source->fd = -1;
    }
}

/* Workers may have been faster to take the descriptor that the reserve was; then it comes back when they give one up.
 */
static void resume(struct admin *admin)
{
    struct admin_listener *listener = admin->listener;
    reserve_open(admin);
    if (listener == NULL) {
        return;
    }
    if (!listener->watched && admin->reserve_fd >= 0) {
        listener->watched = loop_watch_level(admin->place.loop, &listener->source, false) == 0;
    }
    if (!listener->watched) {
        listener_pause(listener);
    }
}

static bool one_waits(const struct admin_listener *listener)
{
    struct pollfd waits = {.fd = listener->source.fd, .events = POLLIN};
    return poll(&waits, 1, 0) > 0;
}

/* A connection that the reserve serves has time while no other waits for the reserve. */
static void pause_over(struct timer *timer)
{
    struct admin *admin = CONTAINER_OF(timer, struct admin, pause);
    if (admin->reserve_fd < 0 && admin->listener != NULL && one_waits(admin->listener)) {
        admin_conns_give_up(admin);
    }
    resume(admin);
}

void admin_conn_gone(struct admin *admin, bool reserved)
{
    if (reserved) {
        resume(admin);
    }
}

/* Listeners. */

static void listener_free(struct admin_listener *listener)
{
    if (listener == NULL) {
        return;
    }
    if (listener->address.any.sa_family == AF_UNIX && listener->source.fd >= 0 && !listener->handed_over) {
        unlink(listener->address.local.sun_path);
    }
    free(listener->text);
    loop_bury(listener->admin->place.loop, &listener->source);
}

/* NULL with errno. */
static struct admin_listener *listener_make(struct admin *admin, const char *text)
{
    struct address address;
    struct admin_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        return NULL;
    }
    bool parsed = address_parse(text, &address) && address.kind != ADDRESS_NAME;
    BECALM_ASSERT(parsed); /* the loader checked it */
    *listener = (struct admin_listener){.source = {.ready = listener_ready, .fd = -1}, .admin = admin};
    listener->address = address.socket;
    listener->text = strdup(text);
    listener->source.fd = listener->text == NULL ? -1 : listen_handed(admin->place.handed, &address.socket);
    listener->handed_over = listener->source.fd >= 0;
    if (listener->text != NULL && listener->source.fd < 0) {
        /* A client at a Unix socket needs no token: from the first moment only the socket's owner can connect to it. */
        bool local = address.kind == ADDRESS_LOCAL;
        mode_t before = local ? umask(S_IXUSR | S_IRWXG | S_IRWXO) : 0;
        listener->source.fd = listen_on(&address.socket, false);
        if (local) {
            umask(before);
        }
    }
    if (listener->source.fd < 0) {
        int error = errno;
        listener_free(listener);
        errno = error;
        return NULL;
    }
    return listener;
}

/* The token. */

static bool is_visible(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text <= ' ' || *text > '~') {
            return false;
        }
    }
    return true;
}

/* The file's text without blanks at its end. NULL: *why has the error. */
static char *token_read(const char *path, const char **why)
{
    char *token = calloc(1, TOKEN_MAX + 1);
    int fd = token == NULL ? -1 : file_open_regular(path, why);
    ssize_t length = fd < 0 ? -1 : read(fd, token, TOKEN_MAX);
    if (fd >= 0 || token == NULL) {
        *why = length < 0 ? strerror(errno) : NULL;
    }
    if (fd >= 0) {
        close(fd);
    }
    while (length > 0 && strchr(" \t\r\n", token[length - 1]) != NULL) {
        token[--length] = '\0';
    }
    if (length == 0) {
        *why = "it is empty";
    } else if (length > 0 && (strlen(token) != (size_t)length || !is_visible(token))) {
        *why = "a token is one word of visible ASCII characters";
    } else if (length == TOKEN_MAX) {
        *why = "a token has fewer than 4096 characters";
    }
    if (*why != NULL) {
        free(token);
        return NULL;
    }
    return token;
}

/* Beginning, change and end. */

int admin_prepare(struct admin *admin, const struct becalm_settings *settings, struct becalm_diags *diags)
{
    const char *path = admin->place.name;
    const char *why = NULL;
    bool same =
        admin->listener != NULL && settings->admin != NULL && strcmp(admin->listener->text, settings->admin) == 0;
    admin->prepared = true;
    admin->next_listener = same ? admin->listener : NULL;
    admin->next_token = NULL;
    const struct becalm_file *named = &settings->admin_token;
    if (settings->admin != NULL && named->path != NULL) {
        const char *found = file_found(named);
        admin->next_token = token_read(found, &why);
        if (admin->next_token == NULL) {
            uint32_t line = named->line == 0 ? 1 : named->line; /* 0: by --set */
            uint32_t column = named->line == 0 ? 1 : named->column;
            becalm_diag_add(diags, BECALM_ERROR, path, line, column, "admin", "adminTokenFile: can't use %s: %s", found,
                            why);
            return BECALM_EIO;
        }
    }
    if (settings->admin != NULL && !same) {
        admin->next_listener = listener_make(admin, settings->admin);
        if (admin->next_listener == NULL) {
            const char *usual = strcmp(settings->admin, BECALM_ADMIN_DEFAULT) == 0 ? " (the default of admin)" : "";
            char text[512];
            (void)snprintf(text, sizeof text,
                           "can't listen on %s%s: %s; write another address for admin, or admin: none", settings->admin,
                           usual, strerror(errno));
            listening_complain(diags, path, &settings->admin_tls, &(struct listening_complaint){"admin", text});
            return BECALM_EIO;
        }
    }
    return 0;
}

void admin_settle(struct admin *admin, bool use)
{
    if (!admin->prepared) {
        return;
    }
    admin->prepared = false;
    bool moves = admin->next_listener != admin->listener;
    if (!use) {
        free(admin->next_token);
        if (moves) {
            listener_free(admin->next_listener);
        }
        return;
    }
    free(admin->token);
    admin->token = admin->next_token;
    if (moves) {
        listener_free(admin->listener);
        admin->listener = admin->next_listener;
        admin_conns_quiet(admin);
        timer_disarm(&admin->pause);
        if (admin->listener != NULL) {
            resume(admin); /* begins to watch it */
        }
    }
}

struct admin *admin_make(const struct admin_place *place)
{
    struct admin *admin = calloc(1, sizeof *admin);
    if (admin != NULL) {
        *admin = (struct admin){.place = *place, .reserve_fd = -1, .pause = {.fire = pause_over}};
        admin->sealed.counts = place->gateway == NULL ? NULL : &place->gateway->tls;
    }
    return admin;
}

void admin_free(struct admin *admin)
{
    if (admin == NULL) {
        return;
    }
    while (admin->conns != NULL) {
        admin_conn_close(admin->conns);
    }
    timer_disarm(&admin->pause);
    listener_free(admin->listener);
    if (admin->reserve_fd >= 0) {
        close(admin->reserve_fd);
    }
    free(admin->token);
    wire_room_free(&admin->sealed);
    free(admin);
}
