/* SPDX-License-Identifier: MIT */
/* The addresses of a policy: may a gateway open them, and which process has one already? */
#define _GNU_SOURCE
#include "doctor.h"

#include "loop/address.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LISTENING 0x0a /* TCP_LISTEN, as /proc/net/tcp has it */

/* ---- the process that has a port ---- */

/* A process that listens. */
struct owner {
    long pid;
    char name[32];
};

/* The inode of a socket that listens on this port; 0: none. */
static unsigned long inode_of(const char *path, uint16_t port)
{
    char line[512];
    unsigned long found = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && found == 0 && fgets(line, sizeof line, file) != NULL) {
        unsigned local;
        unsigned state;
        unsigned long inode;
        /* "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 ..." */
        if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu", &local, &state,
                   &inode) == 3 &&
            local == port && state == LISTENING) {
            found = inode;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

static bool process_has(long pid, const char *wanted)
{
    char folder[64];
    bool has = false;
    (void)snprintf(folder, sizeof folder, "/proc/%ld/fd", pid);
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir != NULL && !has && (entry = readdir(dir)) != NULL) {
        char to[64];
        ssize_t length = readlinkat(dirfd(dir), entry->d_name, to, sizeof to - 1);
        to[length > 0 ? length : 0] = '\0';
        has = strcmp(to, wanted) == 0;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return has;
}

static void name_read(struct owner *owner)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/comm", owner->pid);
    FILE *file = fopen(path, "re");
    if (file == NULL || fgets(owner->name, sizeof owner->name, file) == NULL) {
        (void)snprintf(owner->name, sizeof owner->name, "?");
    }
    if (file != NULL) {
        fclose(file);
    }
    for (char *at = owner->name; *at != '\0'; at++) { /* a program may give itself any name */
        *at = *at == '\n' ? '\0' : (unsigned char)*at < ' ' ? '?' : *at;
        if (*at == '\0') {
            break;
        }
    }
}

/* False: there is none that this user may look at. */
static bool owner_find(uint16_t port, struct owner *owner)
{
    char wanted[64];
    unsigned long inode = inode_of("/proc/net/tcp", port);
    inode = inode != 0 ? inode : inode_of("/proc/net/tcp6", port);
    DIR *dir = inode == 0 ? NULL : opendir("/proc");
    const struct dirent *entry;
    bool found = false;
    (void)snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) && process_has(atol(entry->d_name), wanted)) {
            owner->pid = atol(entry->d_name);
            name_read(owner);
            found = true;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return found;
}

/* ---- may it be opened ---- */

static void in_use(struct doctor *d, const char *key, const char *text, uint16_t port)
{
    struct owner owner;
    bool known = port != 0 && owner_find(port, &owner);
    if (known && strcmp(owner.name, "becalm") == 0) {
        doctor_say(d, DOCTOR_OK, "port", "%s %s: a gateway has it (becalm, process %ld)", key, text, owner.pid);
    } else if (known) {
        doctor_say(d, DOCTOR_FAULT, "port",
                   "%s %s: %s has it (process %ld); do: end that, or write another address for `%s`", key, text,
                   owner.name, owner.pid, key);
    } else if (d->gateway_answers) {
        doctor_say(d, DOCTOR_OK, "port", "%s %s: in use, by the gateway that answers at the admin address, it seems",
                   key, text);
    } else {
        doctor_say(
            d, DOCTOR_FAULT, "port",
            "%s %s: in use by a process that this user may not look at; do: `sudo becalm doctor` names it, or write "
            "another address for `%s`",
            key, text, key);
    }
}

static void cannot(struct doctor *d, const char *key, const char *text, const struct address *address, int error)
{
    switch (error) {
    case EADDRINUSE:
        in_use(d, key, text, address->port);
        break;
    case EACCES:
        doctor_say(
            d, DOCTOR_FAULT, "port",
            "%s %s: this user may not open it; do: a port above 1023, or AmbientCapabilities=CAP_NET_BIND_SERVICE "
            "in the unit",
            key, text);
        break;
    case EADDRNOTAVAIL:
        doctor_say(d, DOCTOR_FAULT, "port",
                   "%s %s: this machine has no such address; do: `ip address` lists those that it has", key, text);
        break;
    default:
        doctor_say(d, DOCTOR_FAULT, "port", "%s %s: %s; do: write another address for `%s`", key, text, strerror(error),
                   key);
    }
}

static void try_port(struct doctor *d, const char *key, const char *text, const struct address *address)
{
    int on = 1;
    int fd = socket(address->socket.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool fine = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                bind(fd, &address->socket.any, address_length(&address->socket)) == 0 && listen(fd, 1) == 0;
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (fine) {
        doctor_say(d, DOCTOR_OK, "port", "%s %s is free", key, text);
    } else {
        cannot(d, key, text, address, error);
    }
}

/* Nothing is made: a socket that is bound leaves a file. */
static void try_path(struct doctor *d, const char *key, const char *text, const struct address *address)
{
    char path[sizeof address->socket.local.sun_path + 1];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool taken = fd >= 0 && connect(fd, &address->socket.any, address_length(&address->socket)) == 0;
    if (fd >= 0) {
        close(fd);
    }
    (void)snprintf(path, sizeof path, "%s", address->socket.local.sun_path);
    const char *folder = dirname(path);
    if (taken) {
        in_use(d, key, text, 0);
    } else if (access(folder, W_OK | X_OK) != 0) {
        doctor_say(d, DOCTOR_FAULT, "port",
                   "%s %s: %s: %s; do: make the folder for the gateway's user, by RuntimeDirectory= in the unit", key,
                   text, folder, strerror(errno));
    } else {
        doctor_say(d, DOCTOR_OK, "port", "%s %s is free", key, text);
    }
}

static void try_address(struct doctor *d, const char *key, const char *text)
{
    struct address address;
    if (!address_parse(text, &address)) {
        return; /* the loader takes none of these */
    }
    switch (address.kind) {
    case ADDRESS_IP:
        try_port(d, key, text, &address);
        break;
    case ADDRESS_LOCAL:
        try_path(d, key, text, &address);
        break;
    case ADDRESS_NAME: /* a listener's address is never a name */
        break;
    }
}

void doctor_ports(struct doctor *d)
{
    const struct becalm_settings *settings = becalm_config_settings(d->config);
    for (uint32_t i = 0; i < settings->listener_count; i++) {
        try_address(d, "listen", settings->listeners[i].address);
    }
    if (settings->admin != NULL) {
        try_address(d, "admin", settings->admin);
    }
}
