/* SPDX-License-Identifier: MIT */
/* The least that a gateway of these protocols can do: nghttp2 sessions, OpenSSL and edge-triggered epoll, one thread,
 * one write per connection and wake-up. Whole messages go from one side to the other; nothing is checked, retried,
 * timed or counted. The cost of a gateway above this floor pays for its features.
 *
 *   floor FROM TO LISTEN HOST [CERT KEY]
 *
 * FROM and TO are h1 or h2; with a certificate clients speak TLS. Bodies of HTTP/1 have a Content-Length. */
#define _GNU_SOURCE

#include "sockets.h"

#include <ctype.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

enum { BUFFER_BYTES = 128 * 1024, FIELDS_MAX = 64, STREAMS_MAX = 1000 };

/* Bytes that wait; they grow, and are used from their beginning. */
struct bytes {
    char *at;
    size_t from;
    size_t length;
    size_t size;
};

struct field {
    size_t name; /* into the message's text */
    size_t name_length;
    size_t value;
    size_t value_length;
};

struct message {
    struct bytes text;
    struct field field[FIELDS_MAX];
    size_t count;
    size_t trailers; /* where they begin; 0: there are none */
    struct bytes body;
};

struct call {
    struct call *next; /* of all */
    struct call **link;
    struct conn *client; /* NULL: it has gone */
    struct conn *host;
    int32_t client_stream;
    bool told; /* the answer was given to the client's session, which needs its bytes until the stream is closed */
    struct message request;
    struct message answer;
};

struct conn {
    int fd;
    bool to_client;
    bool dirty;
    bool over;               /* freed behind the events of this wake-up */
    struct conn *next_dirty; /* or next idle, or next dead */
    nghttp2_session *h2;     /* NULL: HTTP/1 */
    SSL *ssl;
    struct call *call; /* HTTP/1: whose turn it is; NULL: idle */
    struct bytes in;   /* HTTP/1: of a message that has not come in full */
    struct bytes out;  /* HTTP/1: to be written; TLS: of a handshake */
    struct bytes rest; /* bytes that the socket did not accept */
};

static struct {
    int poll;
    int listener;
    bool h2_clients;
    bool h2_hosts;
    struct sockaddr_in host;
    SSL_CTX *tls;
    BIO_METHOD *method;
    nghttp2_session_callbacks *callbacks;
    struct conn *host_h2;
    struct conn *idle;  /* to the host, of HTTP/1 */
    struct conn *dirty; /* have something to write */
    struct conn *dead;
    struct call *calls;
    const char *window; /* sealed bytes that OpenSSL may read */
    size_t window_left;
    struct bytes *sealed; /* where it writes */
    char in[BUFFER_BYTES];
    char plain[BUFFER_BYTES];
} all;

static void fail(const char *what)
{
    fprintf(stderr, "floor: %s\n", what);
    exit(1);
}

/* ---- bytes and messages ---- */

static void bytes_add(struct bytes *bytes, const void *at, size_t length)
{
    if (bytes->from == bytes->length) {
        bytes->from = bytes->length = 0;
    }
    if (bytes->size - bytes->length < length) {
        bytes->size = (bytes->length + length) * 2 + 512;
        bytes->at = realloc(bytes->at, bytes->size);
        must(bytes->at != NULL, "realloc");
    }
    memcpy(bytes->at + bytes->length, at, length);
    bytes->length += length;
}

static void text_add(struct bytes *bytes, const char *text)
{
    bytes_add(bytes, text, strlen(text));
}

static void field_add(struct message *message, const void *name, size_t name_length, const void *value,
                      size_t value_length)
{
    if (message->count == FIELDS_MAX) {
        fail("too many fields");
    }
    struct field *field = &message->field[message->count++];
    *field = (struct field){message->text.length, name_length, message->text.length + name_length, value_length};
    bytes_add(&message->text, name, name_length);
    bytes_add(&message->text, value, value_length);
}

static const char *name_of(const struct message *message, const struct field *field)
{
    return message->text.at + field->name;
}

static bool is_named(const struct message *message, const struct field *field, const char *name)
{
    return field->name_length == strlen(name) && memcmp(name_of(message, field), name, field->name_length) == 0;
}

static const struct field *find(const struct message *message, const char *name)
{
    for (size_t i = 0; i < message->count; i++) {
        if (is_named(message, &message->field[i], name)) {
            return &message->field[i];
        }
    }
    return NULL;
}

/* For one connection only. */
static bool is_hop(const struct message *message, const struct field *field)
{
    return is_named(message, field, "connection") || is_named(message, field, "keep-alive") ||
           is_named(message, field, "te");
}

static void message_free(struct message *message)
{
    free(message->text.at);
    free(message->body.at);
}

static struct call *call_new(struct conn *client, int32_t stream)
{
    struct call *call = must_calloc(1, sizeof *call);
    call->client = client;
    call->client_stream = stream;
    call->next = all.calls;
    call->link = &all.calls;
    if (call->next != NULL) {
        call->next->link = &call->next;
    }
    all.calls = call;
    return call;
}

static void call_free(struct call *call)
{
    *call->link = call->next;
    if (call->next != NULL) {
        call->next->link = call->link;
    }
    message_free(&call->request);
    message_free(&call->answer);
    free(call);
}

/* ---- connections ---- */

static void mark_dirty(struct conn *conn)
{
    if (!conn->dirty && !conn->over) {
        conn->dirty = true;
        conn->next_dirty = all.dirty;
        all.dirty = conn;
    }
}

static struct conn *conn_new(int fd, bool to_client)
{
    struct conn *conn = must_calloc(1, sizeof *conn);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = conn};
    conn->fd = fd;
    conn->to_client = to_client;
    must(epoll_ctl(all.poll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
    if (to_client ? all.h2_clients : all.h2_hosts) {
        nghttp2_settings_entry streams = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX};
        int rc = to_client ? nghttp2_session_server_new(&conn->h2, all.callbacks, conn)
                           : nghttp2_session_client_new(&conn->h2, all.callbacks, conn);
        if (rc != 0 || nghttp2_submit_settings(conn->h2, NGHTTP2_FLAG_NONE, &streams, 1) != 0) {
            fail("no session");
        }
        mark_dirty(conn);
    }
    if (to_client && all.tls != NULL) {
        BIO *bio = BIO_new(all.method);
        conn->ssl = SSL_new(all.tls);
        if (conn->ssl == NULL || bio == NULL) {
            fail("no TLS");
        }
        BIO_set_init(bio, 1);
        SSL_set_bio(conn->ssl, bio, bio);
        SSL_set_accept_state(conn->ssl);
    }
    return conn;
}

static void conn_close(struct conn *conn)
{
    if (conn->over) {
        return;
    }
    if (!conn->to_client && (conn->call != NULL || (conn->h2 != NULL && all.calls != NULL))) {
        fail("the host has closed a connection with calls on it");
    }
    for (struct call *call = all.calls; call != NULL; call = call->next) {
        call->client = call->client == conn ? NULL : call->client;
    }
    for (struct conn **idle = &all.idle; *idle != NULL; idle = &(*idle)->next_dirty) {
        if (*idle == conn) {
            *idle = conn->next_dirty;
            break;
        }
    }
    all.host_h2 = all.host_h2 == conn ? NULL : all.host_h2;
    conn->over = true;
    close(conn->fd);
    if (!conn->dirty) { /* else the list of those frees it */
        conn->next_dirty = all.dead;
        all.dead = conn;
    }
}

static void conn_free(struct conn *conn)
{
    nghttp2_session_del(conn->h2);
    SSL_free(conn->ssl);
    free(conn->in.at);
    free(conn->out.at);
    free(conn->rest.at);
    free(conn);
}

/* ---- HTTP/1 out ---- */

static void put_fields(struct bytes *out, const struct message *message)
{
    for (size_t i = 0; i < message->count && (message->trailers == 0 || i < message->trailers); i++) {
        const struct field *field = &message->field[i];
        if (name_of(message, field)[0] != ':' && !is_hop(message, field)) {
            bytes_add(out, name_of(message, field), field->name_length);
            bytes_add(out, ": ", 2);
            bytes_add(out, message->text.at + field->value, field->value_length);
            bytes_add(out, "\r\n", 2);
        }
    }
}

static void put_value(struct bytes *out, const struct message *message, const char *name)
{
    const struct field *field = find(message, name);
    if (field != NULL) {
        bytes_add(out, message->text.at + field->value, field->value_length);
    }
}

static void put_body(struct bytes *out, const struct message *message, bool always)
{
    char length[64];
    if (find(message, "content-length") == NULL && (always || message->body.length > 0)) {
        bytes_add(out, length,
                  (size_t)snprintf(length, sizeof length, "content-length: %zu\r\n", message->body.length));
    }
    bytes_add(out, "\r\n", 2);
    bytes_add(out, message->body.at == NULL ? "" : message->body.at, message->body.length);
}

static void put_request(struct conn *host, const struct message *request)
{
    put_value(&host->out, request, ":method");
    text_add(&host->out, " ");
    put_value(&host->out, request, ":path");
    text_add(&host->out, " HTTP/1.1\r\nhost: ");
    put_value(&host->out, request, ":authority");
    text_add(&host->out, "\r\n");
    put_fields(&host->out, request);
    put_body(&host->out, request, false);
}

static void put_answer(struct conn *client, const struct message *answer)
{
    text_add(&client->out, "HTTP/1.1 ");
    put_value(&client->out, answer, ":status");
    text_add(&client->out, " OK\r\n"); /* some readers want a reason */
    put_fields(&client->out, answer);
    put_body(&client->out, answer, true);
}

/* ---- HTTP/2 out ---- */

static size_t fields_of(const struct message *message, size_t from, size_t to, nghttp2_nv nv[static FIELDS_MAX])
{
    size_t count = 0;
    for (size_t i = from; i < to; i++) {
        const struct field *field = &message->field[i];
        if (!is_hop(message, field) && !is_named(message, field, "host")) {
            nv[count++] =
                (nghttp2_nv){(uint8_t *)message->text.at + field->name, (uint8_t *)message->text.at + field->value,
                             field->name_length, field->value_length, NGHTTP2_NV_FLAG_NONE};
        }
    }
    return count;
}

static ssize_t next_data(nghttp2_session *h2, int32_t stream, uint8_t *to, size_t length, uint32_t *flags,
                         nghttp2_data_source *source, void *user)
{
    struct message *message = source->ptr;
    struct bytes *body = &message->body;
    size_t now = body->length - body->from < length ? body->length - body->from : length;
    (void)user;
    memcpy(to, body->at == NULL ? "" : body->at + body->from, now);
    body->from += now;
    if (body->from == body->length) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (message->trailers != 0) {
            nghttp2_nv nv[FIELDS_MAX];
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
            nghttp2_submit_trailer(h2, stream, nv, fields_of(message, message->trailers, message->count, nv));
        }
    }
    return (ssize_t)now;
}

static void submit(struct conn *conn, struct call *call, struct message *message)
{
    nghttp2_nv nv[FIELDS_MAX];
    nghttp2_data_provider provider = {.source.ptr = message, .read_callback = next_data};
    size_t count = fields_of(message, 0, message->trailers != 0 ? message->trailers : message->count, nv);
    bool bare = message->body.length == 0 && message->trailers == 0;
    int rc = conn->to_client
                 ? nghttp2_submit_response(conn->h2, call->client_stream, nv, count, bare ? NULL : &provider)
                 : nghttp2_submit_request(conn->h2, NULL, nv, count, bare ? NULL : &provider, call);
    if (rc < 0) {
        fail(nghttp2_strerror(rc));
    }
    mark_dirty(conn);
}

/* ---- a call's way ---- */

static struct conn *host_conn(void)
{
    struct conn *conn = all.h2_hosts ? all.host_h2 : all.idle;
    if (conn == NULL) {
        int fd = socket_connect(&all.host);
        must(fd >= 0, "connect");
        conn = conn_new(fd, false);
        all.host_h2 = all.h2_hosts ? conn : NULL;
    } else if (!all.h2_hosts) {
        all.idle = conn->next_dirty;
        conn->next_dirty = NULL;
    }
    return conn;
}

static void asked(struct call *call)
{
    struct conn *host = host_conn();
    call->host = host;
    if (host->h2 != NULL) {
        submit(host, call, &call->request);
        return;
    }
    host->call = call;
    put_request(host, &call->request);
    mark_dirty(host);
}

/* The whole answer is here. */
static void answered(struct call *call)
{
    struct conn *client = call->client;
    if (client == NULL) {
        call_free(call);
    } else if (client->h2 != NULL) {
        call->told = true;
        submit(client, call, &call->answer);
    } else {
        put_answer(client, &call->answer);
        client->call = NULL;
        mark_dirty(client);
        call_free(call);
    }
}

/* ---- HTTP/2 in ---- */

/* The message of a session: a client's request, or a host's answer. */
static struct message *coming(struct conn *conn, struct call *call)
{
    return conn->to_client ? &call->request : &call->answer;
}

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
    struct conn *conn = user;
    struct call *call = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
    if (conn->to_client && call == NULL) {
        call = call_new(conn, frame->hd.stream_id);
        nghttp2_session_set_stream_user_data(h2, frame->hd.stream_id, call);
    } else if (call != NULL && coming(conn, call)->count > 0) {
        coming(conn, call)->trailers = coming(conn, call)->count;
    }
    return 0;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
    (void)flags;
    if (call != NULL) {
        field_add(coming(user, call), name, name_length, value, value_length);
    }
    return 0;
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t stream, const uint8_t *data, size_t length, void *user)
{
    struct call *call = nghttp2_session_get_stream_user_data(h2, stream);
    (void)flags;
    if (call != NULL) {
        bytes_add(&coming(user, call)->body, data, length);
    }
    return 0;
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
    struct conn *conn = user;
    bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (carries && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        struct call *call = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
        if (call != NULL && conn->to_client) {
            asked(call);
        } else if (call != NULL) {
            nghttp2_session_set_stream_user_data(h2, frame->hd.stream_id, NULL);
            answered(call);
        }
    }
    return 0;
}

static int on_close(nghttp2_session *h2, int32_t stream, uint32_t code, void *user)
{
    struct conn *conn = user;
    struct call *call = nghttp2_session_get_stream_user_data(h2, stream);
    if (call != NULL && conn->to_client) {
        nghttp2_session_set_stream_user_data(h2, stream, NULL);
        call->client = NULL;
        if (call->told || call->host == NULL) {
            call_free(call);
        }
    } else if (call != NULL) {
        fprintf(stderr, "floor: the host has reset a stream: %u\n", code);
        exit(1);
    }
    return 0;
}

/* ---- HTTP/1 in ---- */

/* "GET /path HTTP/1.1" or "HTTP/1.1 200 OK": the first line as HTTP/2 has it. */
static void take_first_line(struct message *message, char *line, bool request)
{
    char *second = strchr(line, ' ');
    char *third = second == NULL ? NULL : strchr(second + 1, ' ');
    if (third == NULL) {
        fail("a first line is malformed");
    }
    if (request) {
        field_add(message, ":method", 7, line, (size_t)(second - line));
        field_add(message, ":scheme", 7, "http", 4);
        field_add(message, ":path", 5, second + 1, (size_t)(third - second - 1));
    } else {
        field_add(message, ":status", 7, second + 1, (size_t)(third - second - 1));
    }
}

/* Length of the body that follows. */
static size_t take_lines(struct message *message, char *head, bool request)
{
    size_t length = 0;
    char *next;
    for (char *line = head; *line != '\0'; line = next) {
        char *end = strstr(line, "\r\n");
        next = end + 2;
        *end = '\0';
        if (line == head) {
            take_first_line(message, line, request);
            continue;
        }
        char *colon = strchr(line, ':');
        if (colon == NULL) {
            fail("a field is malformed");
        }
        for (char *at = line; at < colon; at++) {
            *at = (char)tolower((unsigned char)*at);
        }
        char *value = colon + 1 + (colon[1] == ' ');
        *colon = '\0';
        if (request && strcmp(line, "host") == 0) {
            field_add(message, ":authority", 10, value, (size_t)(end - value));
            continue;
        }
        length = strcmp(line, "content-length") == 0 ? strtoul(value, NULL, 10) : length;
        field_add(message, line, (size_t)(colon - line), value, (size_t)(end - value));
    }
    return length;
}

/* Takes one message from the received bytes. False: it is not complete yet. */
static bool take_message(struct bytes *in, struct message *message, bool request)
{
    char *begin = in->at == NULL ? NULL : in->at + in->from;
    size_t left = in->length - in->from;
    char *end = left == 0 ? NULL : memmem(begin, left, "\r\n\r\n", 4);
    if (end == NULL) {
        return false;
    }
    size_t head = (size_t)(end - begin) + 2;
    struct bytes copy = {0};
    bytes_add(&copy, begin, head);
    bytes_add(&copy, "", 1);
    size_t body = take_lines(message, copy.at, request);
    free(copy.at);
    if (left - head - 2 < body) {
        message->count = message->text.length = 0;
        return false;
    }
    bytes_add(&message->body, begin + head + 2, body);
    in->from += head + 2 + body;
    return true;
}

static void feed_h1(struct conn *conn, const char *bytes, size_t length)
{
    bytes_add(&conn->in, bytes, length);
    if (conn->to_client) {
        struct call *call = conn->call == NULL ? call_new(conn, 0) : NULL; /* one at a time */
        if (call != NULL && take_message(&conn->in, &call->request, true)) {
            conn->call = call;
            asked(call);
        } else if (call != NULL) {
            call_free(call);
        }
    } else if (conn->call != NULL && take_message(&conn->in, &conn->call->answer, false)) {
        struct call *call = conn->call;
        conn->call = NULL;
        conn->next_dirty = all.idle;
        all.idle = conn;
        answered(call);
    }
}

/* ---- bytes in and out ---- */

static void feed(struct conn *conn, const char *bytes, size_t length)
{
    if (conn->h2 == NULL) {
        feed_h1(conn, bytes, length);
    } else if (nghttp2_session_mem_recv(conn->h2, (const uint8_t *)bytes, length) < 0) {
        conn_close(conn);
    } else {
        mark_dirty(conn); /* at least a window may be told */
    }
}

static int bio_read(BIO *bio, char *to, int length)
{
    size_t now = (size_t)length < all.window_left ? (size_t)length : all.window_left;
    BIO_clear_retry_flags(bio);
    if (now == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(to, all.window, now);
    all.window += now;
    all.window_left -= now;
    return (int)now;
}

static int bio_write(BIO *bio, const char *from, int length)
{
    BIO_clear_retry_flags(bio);
    bytes_add(all.sealed, from, (size_t)length);
    return length;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static void unseal(struct conn *conn, const char *bytes, size_t length)
{
    all.window = bytes;
    all.window_left = length;
    all.sealed = &conn->rest; /* bytes of the handshake */
    int got = -1;
    while (!conn->over && (got = SSL_read(conn->ssl, all.plain, sizeof all.plain)) > 0) {
        feed(conn, all.plain, (size_t)got);
    }
    if (!conn->over && SSL_get_error(conn->ssl, got) != SSL_ERROR_WANT_READ) {
        ERR_clear_error();
        conn_close(conn);
    } else if (conn->rest.from < conn->rest.length) {
        mark_dirty(conn);
    }
}

static void read_all(struct conn *conn)
{
    while (!conn->over) {
        ssize_t got = recv(conn->fd, all.in, sizeof all.in, MSG_DONTWAIT);
        if (got < 0 && errno == EAGAIN) {
            return;
        }
        if (got <= 0) {
            conn_close(conn);
            return;
        }
        if (conn->ssl != NULL) {
            unseal(conn, all.in, (size_t)got);
        } else {
            feed(conn, all.in, (size_t)got);
        }
        if ((size_t)got < sizeof all.in) {
            return; /* that was all: another read would only say so */
        }
    }
}

/* Sends waiting bytes, and then these; bytes that the socket does not accept wait. */
static void send_bytes(struct conn *conn, const char *bytes, size_t length)
{
    if (conn->rest.from < conn->rest.length) {
        bytes_add(&conn->rest, bytes, length);
        bytes = conn->rest.at + conn->rest.from;
        length = conn->rest.length - conn->rest.from;
    }
    ssize_t sent = length == 0 ? 0 : socket_send(conn->fd, bytes, length);
    if (sent < 0) {
        conn_close(conn);
    } else if (conn->rest.from < conn->rest.length) {
        conn->rest.from += (size_t)sent;
    } else if ((size_t)sent < length) {
        bytes_add(&conn->rest, bytes + sent, length - (size_t)sent);
    }
}

static void write_all(struct conn *conn)
{
    static struct bytes sealed;
    const uint8_t *frame;
    ssize_t got;
    struct bytes *out = &conn->out;
    while (conn->h2 != NULL && (got = nghttp2_session_mem_send(conn->h2, &frame)) > 0) {
        bytes_add(out, frame, (size_t)got);
    }
    size_t length = out->length - out->from;
    if (conn->ssl != NULL && length > 0) {
        all.sealed = &sealed;
        if (SSL_write(conn->ssl, out->at + out->from, (int)length) <= 0) {
            send_bytes(conn, "", 0); /* the handshake is not done: only its own bytes are sent */
            return;
        }
        send_bytes(conn, sealed.at + sealed.from, sealed.length - sealed.from);
        sealed.from = sealed.length = 0;
    } else {
        send_bytes(conn, length == 0 ? "" : out->at + out->from, length);
    }
    out->from = out->length = 0;
}

static void write_dirty(void)
{
    while (all.dirty != NULL) {
        struct conn *conn = all.dirty;
        all.dirty = conn->next_dirty;
        conn->dirty = false;
        if (!conn->over) {
            write_all(conn);
        }
        if (conn->over) {
            conn->next_dirty = all.dead;
            all.dead = conn;
        }
    }
    while (all.dead != NULL) {
        struct conn *conn = all.dead;
        all.dead = conn->next_dirty;
        conn_free(conn);
    }
}

static int choose(SSL *ssl, const unsigned char **out, unsigned char *length, const unsigned char *in,
                  unsigned in_length, void *user)
{
    static const unsigned char h1[] = "\x08http/1.1";
    static const unsigned char h2[] = "\x02h2";
    (void)ssl;
    (void)user;
    int rc = SSL_select_next_proto((unsigned char **)(uintptr_t)out, length, all.h2_clients ? h2 : h1,
                                   all.h2_clients ? sizeof h2 - 1 : sizeof h1 - 1, in, in_length);
    return rc == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static void prepare(int count, char **words)
{
    all.h2_clients = strcmp(words[1], "h2") == 0;
    all.h2_hosts = strcmp(words[2], "h2") == 0;
    all.host = address_parse(words[4]);
    all.listener = socket_listen(words[3]);
    all.poll = epoll_create1(EPOLL_CLOEXEC);
    must(all.poll >= 0, "epoll_create1");
    struct epoll_event event = {.events = EPOLLIN};
    must(epoll_ctl(all.poll, EPOLL_CTL_ADD, all.listener, &event) == 0, "epoll_ctl");
    must(nghttp2_session_callbacks_new(&all.callbacks) == 0, "nghttp2");
    nghttp2_session_callbacks_set_on_begin_headers_callback(all.callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(all.callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all.callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(all.callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(all.callbacks, on_close);
    if (count == 7) {
        all.tls = SSL_CTX_new(TLS_server_method());
        all.method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "floor");
        if (all.tls == NULL || all.method == NULL || SSL_CTX_use_certificate_chain_file(all.tls, words[5]) != 1 ||
            SSL_CTX_use_PrivateKey_file(all.tls, words[6], SSL_FILETYPE_PEM) != 1) {
            fail("the certificate or its key can't be used");
        }
        BIO_meth_set_read(all.method, bio_read);
        BIO_meth_set_write(all.method, bio_write);
        BIO_meth_set_ctrl(all.method, bio_control);
        SSL_CTX_set_mode(all.tls, SSL_MODE_RELEASE_BUFFERS);
        SSL_CTX_set_alpn_select_cb(all.tls, choose, NULL);
    }
}

int main(int count, char **words)
{
    static struct epoll_event events[EVENTS_MAX];
    if (count != 5 && count != 7) {
        fprintf(stderr, "usage: floor h1|h2 h1|h2 LISTEN HOST [CERT KEY]\n");
        return 2;
    }
    descriptors_raise();
    prepare(count, words);
    for (;;) {
        int ready = poll_wait(all.poll, events, -1);
        for (int i = 0; i < ready; i++) {
            struct conn *conn = events[i].data.ptr;
            int fd;
            while (conn == NULL && (fd = socket_accept(all.listener)) >= 0) {
                read_all(conn_new(fd, true));
            }
            if (conn != NULL && (events[i].events & EPOLLOUT) != 0 && conn->rest.from < conn->rest.length) {
                mark_dirty(conn);
            }
            if (conn != NULL) {
                read_all(conn);
            }
        }
        write_dirty();
    }
}
