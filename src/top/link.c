/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "link.h"

#include <becalm/version.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcurl/libcurl.h"

#define TOKEN_MAX  4096u
#define CONNECT_MS 3000L
#define ANSWER_MS  10000L
#define WAITED_MAX 4u

struct link {
    const struct link_place *place;
    const char *token_file;
    struct libcurl libcurl;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *fields;
    enum link_state state;
    char *text;
    size_t length;
    bool too_large;
    bool orders;
    long status; /* of the latest answer */
    char why[LINK_WHY_MAX];
};

static void say(char why[LINK_WHY_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text from a gateway may contain escape sequences. */
static void say(char why[LINK_WHY_MAX], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, LINK_WHY_MAX, format, list);
    va_end(list);
    for (char *at = why; *at != '\0'; at++) {
        *at = (unsigned char)*at < 0x20 || *at == 0x7f ? ' ' : *at;
    }
}

static void fail(struct link *link, const char *why)
{
    link->state = LINK_FAILED;
    say(link->why, "%s", why);
}

/* ---- the gateway's address ---- */

/* The text after http:// or https://, or the whole text; NULL for another scheme. */
static const char *authority(const char *admin)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t length = strlen(schemes[i]);
        if (strncmp(admin, schemes[i], length) == 0) {
            return admin + length;
        }
    }
    return strstr(admin, "://") == NULL ? admin : NULL;
}

static bool parse_socket(const char *path, struct link_place *place, char why[LINK_WHY_MAX])
{
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof place->socket) {
        say(why, "the path of a Unix socket has 1 to %zu bytes", sizeof place->socket - 1);
        return false;
    }
    *place = (struct link_place){.url = "http://localhost"};
    snprintf(place->name, sizeof place->name, "unix:%s", path);
    strcpy(place->socket, path);
    return true;
}

bool link_place_parse(const char *admin, struct link_place *place, char why[LINK_WHY_MAX])
{
    if (strncmp(admin, "unix:", 5) == 0) {
        return parse_socket(admin + 5, place, why);
    }
    const char *host = authority(admin);
    bool has_scheme = host != admin;
    size_t length = host == NULL ? 0 : strcspn(host, "/");
    bool has_port = length > 0 && memchr(host, ':', length) != NULL;
    /* A password has no place on a command line; 9900 alone would be a host of that name. */
    if (length == 0 || length >= sizeof place->name || strlen(admin) >= sizeof place->url - 8 ||
        strpbrk(admin, " @?#") != NULL || !(has_scheme || has_port)) {
        say(why, "'%.100s' is no admin address; write http://127.0.0.1:9900 or unix:/path", admin);
        return false;
    }
    *place = (struct link_place){.socket = ""};
    memcpy(place->name, host, length);
    snprintf(place->url, sizeof place->url, "%s%s", has_scheme ? "" : "http://", admin);
    for (size_t end = strlen(place->url); place->url[end - 1] == '/'; end--) {
        place->url[end - 1] = '\0';
    }
    return true;
}

/* ---- its life ---- */

static size_t on_body(char *data, size_t unit, size_t count, void *user)
{
    struct link *link = user;
    size_t more = unit * count;
    link->too_large = more > LINK_ANSWER_MAX - link->length;
    char *text = link->too_large ? NULL : realloc(link->text, link->length + more + 1);
    if (text == NULL) {
        return 0; /* curl ends the transfer */
    }
    memcpy(text + link->length, data, more);
    link->text = text;
    link->length += more;
    text[link->length] = '\0';
    return more;
}

static void set_up(struct link *link)
{
    const struct libcurl *libcurl = &link->libcurl;
    CURL *easy = link->easy;
    libcurl->easy_setopt(easy, CURLOPT_USERAGENT, "becalm/" BECALM_VERSION);
    libcurl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    libcurl->easy_setopt(easy, CURLOPT_WRITEDATA, link);
    libcurl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    libcurl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    libcurl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, ANSWER_MS);
    libcurl->easy_setopt(easy, CURLOPT_PROXY, ""); /* no proxy must see the token */
#if LIBCURL_VERSION_NUM >= 0x075500
    libcurl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    libcurl->easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    if (link->place->socket[0] != '\0') {
        libcurl->easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, link->place->socket);
    }
}

struct link *link_new(const struct link_place *place, const char *token_file)
{
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL) {
        return NULL;
    }
    link->place = place;
    link->token_file = token_file;
    libcurl_load(&link->libcurl);
    link->multi = link->libcurl.multi_init();
    link->easy = link->libcurl.easy_init();
    if (link->multi == NULL || link->easy == NULL) {
        link_free(link);
        return NULL;
    }
    set_up(link);
    return link;
}

/* Drops the request and its answer. */
static void reset(struct link *link)
{
    if (link->state == LINK_BUSY) {
        link->libcurl.multi_remove_handle(link->multi, link->easy);
    }
    link->libcurl.slist_free_all(link->fields);
    link->fields = NULL;
    free(link->text);
    link->text = NULL;
    link->length = 0;
    link->too_large = false;
    link->orders = false;
    link->libcurl.easy_setopt(link->easy, CURLOPT_CUSTOMREQUEST, NULL);
    link->libcurl.easy_setopt(link->easy, CURLOPT_HTTPGET, 1L);
    link->state = LINK_IDLE;
}

void link_free(struct link *link)
{
    if (link != NULL) {
        reset(link);
        link->libcurl.easy_cleanup(link->easy);
        link->libcurl.multi_cleanup(link->multi);
        free(link);
    }
}

/* ---- to ask ---- */

/* The file's one word as a field of the request. False: why it can't be. */
static bool add_token(struct link *link)
{
    char token[TOKEN_MAX + 1];
    char field[TOKEN_MAX + 32];
    FILE *file = fopen(link->token_file, "re");
    size_t length = file == NULL ? 0 : fread(token, 1, TOKEN_MAX, file);
    if (file == NULL || ferror(file) != 0) {
        say(link->why, "can't read %.100s: %s", link->token_file, strerror(errno));
    }
    bool read = file != NULL && ferror(file) == 0;
    if (file != NULL) {
        fclose(file);
    }
    while (length > 0 && strchr(" \t\r\n", token[length - 1]) != NULL) {
        length--;
    }
    token[length] = '\0';
    if (read && (length == 0 || length == TOKEN_MAX || strpbrk(token, " \t\r\n") != NULL || strlen(token) != length)) {
        say(link->why, "%.100s must hold one word", link->token_file);
        read = false;
    }
    if (read) {
        snprintf(field, sizeof field, "Authorization: Bearer %s", token);
        link->fields = link->libcurl.slist_append(NULL, field);
    }
    return read;
}

static bool set_url(struct link *link, const char *path, const char *service)
{
    char url[2048];
    char *escaped = link->libcurl.easy_escape(link->easy, service == NULL ? "" : service, 0);
    bool fits = escaped != NULL &&
                snprintf(url, sizeof url, "%s%s%s", link->place->url, path, escaped) < (int)sizeof url &&
                link->libcurl.easy_setopt(link->easy, CURLOPT_URL, url) == CURLE_OK;
    link->libcurl.free(escaped);
    return fits;
}

/* The request is set up: begins it. */
static void ask(struct link *link, const char *path, const char *service)
{
    if (link->token_file != NULL && !add_token(link)) {
        link->state = LINK_FAILED;
        return;
    }
    link->libcurl.easy_setopt(link->easy, CURLOPT_HTTPHEADER, link->fields);
    if (!set_url(link, path, service) || link->libcurl.multi_add_handle(link->multi, link->easy) != CURLM_OK) {
        fail(link, "out of memory");
        return;
    }
    link->state = LINK_BUSY;
}

void link_ask(struct link *link, const char *path, const char *service)
{
    reset(link);
    ask(link, path, service);
}

void link_order(struct link *link, const char *method, const char *path, const char *name, const char *body)
{
    reset(link);
    link->orders = true;
    if (body != NULL) {
        link->libcurl.easy_setopt(link->easy, CURLOPT_COPYPOSTFIELDS, body);
    }
    link->libcurl.easy_setopt(link->easy, CURLOPT_CUSTOMREQUEST, method);
    ask(link, path, name);
}

enum link_state link_end(struct link *link)
{
    while (link_step(link) == LINK_BUSY) {
        link_wait(link, NULL, 0, 1000);
    }
    return link->state;
}

long link_status(const struct link *link)
{
    return link->status;
}

void link_wait(struct link *link, const int *fd, uint32_t count, int timeout_ms)
{
    struct curl_waitfd wait[WAITED_MAX];
    for (uint32_t i = 0; i < count && i < WAITED_MAX; i++) {
        wait[i] = (struct curl_waitfd){.fd = fd[i], .events = CURL_WAIT_POLLIN};
    }
    link->libcurl.multi_poll(link->multi, wait, count, timeout_ms, NULL);
}

/* ---- the answer ---- */

static void explain_status(struct link *link, long status)
{
    bool has_token = link->token_file != NULL;
    if (status == 401) {
        fail(link, has_token ? "401: the gateway does not know the token of --token-file"
                             : "401: the gateway asks for a token; give --token-file");
    } else if (status == 403) {
        fail(link, "403: ask the gateway by its address, not by a name");
    } else {
        char text[80];
        snprintf(text, sizeof text, "HTTP %ld: is this the admin address of a gateway?", status);
        fail(link, text);
    }
}

static void explain_code(struct link *link, CURLcode code)
{
    long error = 0;
    link->libcurl.easy_getinfo(link->easy, CURLINFO_OS_ERRNO, &error);
    if (link->too_large) {
        fail(link, "the answer is too large");
    } else if (code == CURLE_COULDNT_CONNECT && error != 0) {
        fail(link, strerror((int)error));
    } else if (code == CURLE_OPERATION_TIMEDOUT) {
        fail(link, "no answer within 10s");
    } else {
        fail(link, link->libcurl.easy_strerror(code));
    }
}

static void end(struct link *link, CURLcode code)
{
    long status = 0;
    link->libcurl.easy_getinfo(link->easy, CURLINFO_RESPONSE_CODE, &status);
    link->libcurl.multi_remove_handle(link->multi, link->easy);
    link->state = LINK_DONE;
    link->status = status;
    if (code != CURLE_OK) {
        explain_code(link, code);
    } else if (status != 200 && !link->orders) {
        explain_status(link, status);
    }
}

enum link_state link_step(struct link *link)
{
    int running = 0;
    int left = 0;
    CURLMsg *message;
    link->libcurl.multi_perform(link->multi, &running);
    while (link->state == LINK_BUSY && (message = link->libcurl.multi_info_read(link->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            end(link, message->data.result);
        }
    }
    return link->state;
}

const char *link_text(const struct link *link, size_t *length)
{
    *length = link->length;
    return link->text == NULL ? "" : link->text;
}

const char *link_why(const struct link *link)
{
    return link->why;
}
