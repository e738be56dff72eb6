/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "exchange_lab.h"

#include "gateway/control.h"
#include "proxy/client/client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BEGAN    (1000 * BECALM_S) /* the first value of its clock */
#define WALL     (1700000000 * BECALM_S)
#define TURNS    1000 /* of one settling: more would be a gateway that never rests */
#define HEAR_MAX (256u * 1024)

__attribute__((format(printf, 2, 3))) static void note(struct lab *lab, const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    unsigned ms = (unsigned)(becalm_ns_since(lab->worker->loop.now, lab->began_at) / BECALM_MS);
    int length = snprintf(lab->trace + lab->length, sizeof lab->trace - lab->length, "[%3ums] %s\n", ms, line);
    if (length > 0 && (size_t)length < sizeof lab->trace - lab->length) {
        lab->length += (size_t)length;
    }
}

/* ---- ends ---- */

static struct lab_end *end_add(struct lab *lab, int fd, char host)
{
    if (lab->ends == LAB_ENDS_MAX) {
        close(fd);
        return NULL;
    }
    struct lab_end *end = &lab->end[lab->ends++];
    *end = (struct lab_end){.fd = fd, .host = host};
    end->number = host == 0 ? ++lab->clients : ++lab->hosts;
    return end;
}

static struct lab_end *end_find(struct lab *lab, bool is_client, uint32_t number)
{
    for (uint32_t i = 0; i < lab->ends; i++) {
        if ((lab->end[i].host == 0) == is_client && lab->end[i].number == number && lab->end[i].fd >= 0) {
            return &lab->end[i];
        }
    }
    return NULL;
}

static void end_close(struct lab_end *end)
{
    close(end->fd);
    end->fd = -1;
}

static const char *name_of(const struct lab_end *end)
{
    static char name[32];
    if (end->host == 0) {
        snprintf(name, sizeof name, "client %u", end->number);
    } else {
        snprintf(name, sizeof name, "host %c%u", end->host, end->number);
    }
    return name;
}

/* "GET /a" of a request's head, "200" of an answer's; the head's length, or 0 if this is no head. */
static size_t read_title(const char *text, size_t length, char *title, size_t size)
{
    const char *head_end = memmem(text, length, "\r\n\r\n", 4);
    const char *line_end = memmem(text, length, "\r\n", 2);
    if (head_end == NULL) {
        return 0;
    }
    size_t line = (size_t)(line_end - text);
    if (line >= 12 && memcmp(text, "HTTP/1.", 7) == 0) {
        snprintf(title, size, "%.3s", text + 9);
        return (size_t)(head_end - text) + 4;
    }
    if (line > 9 && memcmp(line_end - 9, " HTTP/1.", 8) == 0) {
        snprintf(title, size, "%.*s", (int)(line - 9), text);
        return (size_t)(head_end - text) + 4;
    }
    return 0;
}

/* One message, or part of one. Returns how much of the text it is. */
static size_t note_message(struct lab *lab, const struct lab_end *end, const char *verb, const char *text,
                           size_t length)
{
    char title[64];
    size_t head = read_title(text, length, title, sizeof title);
    const char *next = head == 0 ? NULL : memmem(text + head, length - head, "HTTP/1.", 7);
    size_t all = next != NULL && memcmp(next - 2, "\r\n", 2) == 0 && end->host == 0 ? (size_t)(next - text) : length;
    if (head == 0) {
        note(lab, "%s %s %zu bytes", name_of(end), verb, all);
    } else if (all == head) {
        note(lab, "%s %s %s", name_of(end), verb, title);
    } else {
        note(lab, "%s %s %s and %zu bytes", name_of(end), verb, title, all - head);
    }
    return all;
}

#define PREFACE    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define FRAME_HEAD 9

/* "SETTINGS, HEADERS 1 end, SETTINGS ack" */
static void note_frames(struct lab *lab, const struct lab_end *end, const char *verb, const char *text, size_t length)
{
    static const char *const names[] = {"DATA", "HEADERS", "PRIORITY", "RST_STREAM",    "SETTINGS",
                                        "PUSH", "PING",    "GOAWAY",   "WINDOW_UPDATE", "CONTINUATION"};
    const unsigned char *at = (const unsigned char *)text;
    char line[192];
    size_t used = 0;
    while (length >= FRAME_HEAD && used < sizeof line - 48) {
        size_t frame = FRAME_HEAD + ((size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2]);
        unsigned stream = (unsigned)at[7] << 8 | at[8];
        bool ends = at[3] <= 1 && (at[4] & 1) != 0;
        bool acknowledges = (at[3] == 4 || at[3] == 6) && (at[4] & 1) != 0;
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", used == 0 ? "" : ", ",
                                 at[3] < sizeof names / sizeof *names ? names[at[3]] : "?");
        if (stream != 0) {
            used += (size_t)snprintf(line + used, sizeof line - used, " %u", stream);
        }
        used += (size_t)snprintf(line + used, sizeof line - used, "%s", ends ? " end" : acknowledges ? " ack" : "");
        frame = frame < length ? frame : length;
        at += frame;
        length -= frame;
    }
    if (used > 0) {
        note(lab, "%s %s %s", name_of(end), verb, line);
    }
}

static void note_text(struct lab *lab, struct lab_end *end, const char *verb, const char *text, size_t length)
{
    size_t preface = sizeof PREFACE - 1;
    if (end->host != 0 && length >= preface && memcmp(text, PREFACE, preface) == 0) {
        end->h2 = true;
        text += preface;
        length -= preface;
    }
    if (end->h2) {
        note_frames(lab, end, verb, text, length);
        return;
    }
    while (length > 0) {
        size_t done = note_message(lab, end, verb, text, length);
        text += done;
        length -= done;
    }
}

/* Reads the available bytes. True: there were some. */
static bool end_hear(struct lab *lab, struct lab_end *end)
{
    static char text[HEAR_MAX];
    size_t length = 0;
    ssize_t got;
    while (length < sizeof text && (got = read(end->fd, text + length, sizeof text - length)) > 0) {
        length += (size_t)got;
    }
    bool ended = length < sizeof text && (got == 0 || (got < 0 && errno != EAGAIN));
    note_text(lab, end, "hears", text, length);
    if (ended) {
        note(lab, "%s hears %s", name_of(end), got == 0 ? "the end" : "a reset");
        end->deaf = true;
    }
    return length > 0 || ended;
}

/* Hosts accept all connections. */
static bool hosts_accept(struct lab *lab)
{
    bool any = false;
    for (int i = 0; i < 2; i++) {
        int fd = accept4(lab->listen_fd[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            end_add(lab, fd, (char)('a' + i));
            any = true;
        }
    }
    return any;
}

void lab_settle(struct lab *lab)
{
    for (int turn = 0; turn < TURNS; turn++) {
        loop_turn(&lab->worker->loop, false);
        bool moved = hosts_accept(lab) || lab->worker->loop.first_task != NULL;
        for (uint32_t i = 0; i < lab->ends; i++) {
            moved |= lab->end[i].fd >= 0 && !lab->end[i].deaf && !lab->end[i].paused && end_hear(lab, &lab->end[i]);
        }
        if (!moved) {
            return;
        }
    }
    fprintf(stderr, "exchange_lab: the gateway never rests\n%s", lab->trace);
    abort();
}

void lab_pass(struct lab *lab, becalm_ns time)
{
    struct loop *loop = &lab->worker->loop;
    becalm_ns until = becalm_ns_after(loop->now, time);
    while (loop->now < until) {
        becalm_ns next = becalm_ns_max(wheel_next(&loop->wheel), loop->now + BECALM_MS);
        becalm_ns step = becalm_ns_min(next, until);
        loop->wall += step - loop->now;
        loop->now = step;
        lab_settle(lab);
    }
}

static void end_says(struct lab *lab, struct lab_end *end, const char *text, size_t length)
{
    if (end == NULL || end->shut || length == 0) {
        return;
    }
    note_text(lab, end, "says", text, length);
    ssize_t sent = send(end->fd, text, length, MSG_NOSIGNAL);
    (void)sent; /* bytes that do not fit are lost; the gateway must survive that, too */
    lab_settle(lab);
}

static void end_leaves(struct lab *lab, struct lab_end *end)
{
    if (end == NULL || end->shut) {
        return;
    }
    note(lab, "%s ends", name_of(end));
    end->shut = true;
    shutdown(end->fd, SHUT_WR);
    lab_settle(lab);
}

static void end_goes(struct lab *lab, struct lab_end *end)
{
    if (end == NULL) {
        return;
    }
    note(lab, "%s goes", name_of(end));
    end_close(end);
    lab_settle(lab);
}

void lab_client_says_bytes(struct lab *lab, uint32_t client, const char *text, size_t length)
{
    end_says(lab, end_find(lab, true, client), text, length);
}

void lab_host_says_bytes(struct lab *lab, uint32_t host, const char *text, size_t length)
{
    end_says(lab, end_find(lab, false, host), text, length);
}

void lab_client_says(struct lab *lab, uint32_t client, const char *text)
{
    lab_client_says_bytes(lab, client, text, strlen(text));
}

void lab_host_says(struct lab *lab, uint32_t host, const char *text)
{
    lab_host_says_bytes(lab, host, text, strlen(text));
}

void lab_client_leaves(struct lab *lab, uint32_t client)
{
    end_leaves(lab, end_find(lab, true, client));
}

void lab_host_leaves(struct lab *lab, uint32_t host)
{
    end_leaves(lab, end_find(lab, false, host));
}

void lab_client_goes(struct lab *lab, uint32_t client)
{
    end_goes(lab, end_find(lab, true, client));
}

void lab_host_goes(struct lab *lab, uint32_t host)
{
    end_goes(lab, end_find(lab, false, host));
}

void lab_pause(struct lab *lab, bool is_client, uint32_t number)
{
    struct lab_end *end = end_find(lab, is_client, number);
    if (end != NULL) {
        end->paused = !end->paused;
        lab_settle(lab);
    }
}

uint32_t lab_client(struct lab *lab)
{
    int fd[2];
    union address_socket peer = {.any = {.sa_family = AF_UNIX}};
    if (lab->ends == LAB_ENDS_MAX || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) != 0) {
        return 0;
    }
    struct lab_end *end = end_add(lab, fd[1], 0);
    client_accept(lab->worker, fd[0], &peer, &(struct client_door){0});
    lab_settle(lab);
    return end->number;
}

/* ---- beginning and end ---- */

static int host_listen(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0) {
        return -1;
    }
    return fd;
}

/* The policy with addresses in place of %s. Before the policy stand the keys that only this gateway needs, and the
 * rules of calls: written out, so that a change of the defaults does not change a story. */
static char *write_policy(const struct lab *lab, const char *policy)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) {
        return NULL;
    }
    if (strstr(policy, "listen:") == NULL) {
        fprintf(out, "listen: unix:%s/in\nworkers: 1\n", lab->folder);
    }
    fputs("admin: none\n"
          "defaults: {maxRetries: 1, initialDelay: 100ms, jitter: none, attemptTimeout: 10s, budget: {kind: none}}\n",
          out);
    char host = 'a';
    for (const char *at = policy; *at != '\0'; at++) {
        if (at[0] == '%' && at[1] == 's') {
            fprintf(out, "unix:%s/%c", lab->folder, host++);
            at++;
        } else {
            fputc(*at, out);
        }
    }
    return fclose(out) == 0 ? text : NULL;
}

bool lab_reload(struct lab *lab, const char *policy)
{
    static struct becalm_diags diags;
    struct gateway *gateway = lab->gateway;
    char *text = write_policy(lab, policy);
    if (text == NULL) {
        return false;
    }
    free(gateway->text);
    gateway->text = text;
    diags = (struct becalm_diags){0};
    int rc = reload_now(control_place(gateway->control), &diags, lab->worker->loop.now, lab->worker->loop.wall);
    note(lab, "reload %s", rc == 0 ? "works" : "fails");
    lab_settle(lab);
    return rc == 0;
}

#define FOLDER "becalm-lab-"

/* A folder that is locked while its process lives. -1: it is another's. */
static int folder_lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void folder_remove(const char *path, int fd)
{
    (void)unlinkat(fd, "a", 0);
    (void)unlinkat(fd, "b", 0);
    (void)unlinkat(fd, "in", 0);
    (void)rmdir(path);
    close(fd);
}

/* Removes the files of processes that were killed, or ended by an assertion. */
static void folders_sweep(void)
{
    DIR *all = opendir("/tmp");
    for (const struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        char path[300];
        snprintf(path, sizeof path, "/tmp/%s", entry->d_name);
        int fd = strncmp(entry->d_name, FOLDER, strlen(FOLDER)) == 0 ? folder_lock(path) : -1;
        if (fd >= 0) {
            folder_remove(path, fd);
        }
    }
    if (all != NULL) {
        closedir(all);
    }
}

/* Another process may sweep a folder away before it is locked: then one more is made. */
static bool folder_make(struct lab *lab)
{
    static bool swept;
    struct stat made;
    if (!swept) {
        swept = true;
        folders_sweep();
    }
    for (int tries = 0; tries < 100; tries++) {
        snprintf(lab->folder, sizeof lab->folder, "/tmp/" FOLDER "XXXXXX");
        if (mkdtemp(lab->folder) == NULL) {
            return false;
        }
        lab->folder_fd = folder_lock(lab->folder);
        if (lab->folder_fd >= 0 && fstat(lab->folder_fd, &made) == 0 && made.st_nlink > 0) {
            return true;
        }
        if (lab->folder_fd >= 0) {
            close(lab->folder_fd);
        }
    }
    return false;
}

bool lab_open(struct lab *lab, const char *policy)
{
    static struct becalm_diags diags;
    *lab = (struct lab){.listen_fd = {-1, -1}, .null_fd = -1, .folder_fd = -1};
    if (!folder_make(lab)) {
        perror("exchange_lab");
        return false;
    }
    for (int i = 0; i < 2; i++) {
        char path[80];
        snprintf(path, sizeof path, "%s/%c", lab->folder, 'a' + i);
        lab->listen_fd[i] = host_listen(path);
    }
    char *text = write_policy(lab, policy);
    diags = (struct becalm_diags){0};
    lab->null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC); /* lines that can't be written would be waited for */
    struct gateway_options options = {
        .path = "policy.yaml", .text = text, .log_fd = lab->null_fd, .access_fd = lab->null_fd};
    int rc = text == NULL ? BECALM_ENOMEM : gateway_make(&lab->gateway, &options, &diags);
    free(text);
    if (rc != 0) {
        fprintf(stderr, "exchange_lab: no gateway: %s\n", diags.count > 0 ? diags.diag[0].message : "no memory");
        lab_close(lab);
        return false;
    }
    lab->worker = &lab->gateway->worker[0];
    struct loop *loop = &lab->worker->loop;
    loop->stands = true;
    loop->random = 1;
    loop->now = lab->began_at = BEGAN;
    loop->wall = WALL;
    wheel_init(&loop->wheel, loop->now); /* nothing is armed yet */
    return true;
}

void lab_close(struct lab *lab)
{
    gateway_free(lab->gateway);
    for (uint32_t i = 0; i < lab->ends; i++) {
        if (lab->end[i].fd >= 0) {
            close(lab->end[i].fd);
        }
    }
    for (int i = 0; i < 2; i++) {
        if (lab->listen_fd[i] >= 0) {
            close(lab->listen_fd[i]);
        }
    }
    folder_remove(lab->folder, lab->folder_fd);
    if (lab->null_fd >= 0) {
        close(lab->null_fd);
    }
}
