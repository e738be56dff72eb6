/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "admin_internal.h"

#include "container.h"
#include "message/date.h"
#include "proxy/gateway_shared.h"

#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define HEAD_TIME     (10 * BECALM_S) /* for a head, and again for a body, and for each piece of an answer */
#define BRIEF_TIME    (2 * BECALM_S)  /* the same while descriptors are short */
#define IDLE_TIME     (60 * BECALM_S)
#define LINGER        (2 * BECALM_S)
#define SPEAK_TIME    (100 * BECALM_MS) /* without progress, before its descriptor is taken for another connection */
#define READ          4096u
#define TURN          16 /* steps of one connection, then others have their turn */
#define OUT_HEAD      1024u
#define STREAM_UNSENT (16 * 1024) /* bytes */

enum conn_state {
    CONN_IDLE,   /* between requests */
    CONN_HEAD,   /* part of a head has come, or is awaited on a new connection */
    CONN_BODY,   /* the body is coming */
    CONN_WRITE,  /* the answer goes out */
    CONN_STREAM, /* an answer without end: all events so far are sent, and admin_tell() adds the next */
    CONN_LINGER  /* answered for the last time: waits for the peer to close, so that it can read the answer */
};

struct admin_conn {
    struct wire wire; /* first */
    struct timer timer;
    struct task task; /* goes on, after others had their turn */
    struct admin *admin;
    struct admin_conn *next;
    struct admin_conn **link;
    enum conn_state state;
    becalm_ns since; /* its latest progress */
    uint32_t steps;  /* of the handshake, and the first byte behind it */
    uint64_t heard;  /* the wake-up in which it was heard last, before it would have been closed for another one */
    union address_socket local;
    struct buffer in; /* the head, then the bytes after it */
    size_t scanned;   /* bytes of `in` that hold no head's end */
    struct head head;
    struct h1_body body;
    struct buffer body_bytes;
    struct buffer trailers; /* behind it: looked at, and no use for them */
    char out_head[OUT_HEAD];
    size_t out_head_length;
    struct admin_answer answer;
    size_t sent; /* of head and page together */
    bool keep;
    bool reserved;
    bool quiet; /* goes after its answer */
};

static void enter(struct admin_conn *conn, enum conn_state state, becalm_ns patience)
{
    struct loop *loop = conn->admin->place.loop;
    conn->state = state;
    conn->since = loop_clock(loop); /* the peer's time begins now, however long it took us to come here */
    becalm_ns most = conn->reserved ? BRIEF_TIME : patience;
    wheel_arm(&loop->wheel, &conn->timer, becalm_ns_after(loop->now, becalm_ns_min(patience, most)));
}

void admin_conn_close(struct admin_conn *conn)
{
    struct admin *admin = conn->admin;
    bool reserved = conn->reserved;
    timer_disarm(&conn->timer);
    loop_not_later(admin->place.loop, &conn->task);
    buffer_free(&conn->in);
    buffer_free(&conn->body_bytes);
    buffer_free(&conn->trailers);
    buffer_free(&conn->answer.page);
    *conn->link = conn->next;
    if (conn->next != NULL) {
        conn->next->link = conn->link;
    }
    admin->conn_count--;
    admin->stream_count -= conn->answer.streams;
    wire_free(&conn->wire);
    bytes_free(&conn->wire.out);
    if (reserved) {
        admin_reserve_back(admin, &conn->wire.source);
    }
    loop_bury(admin->place.loop, &conn->wire.source);
    admin_conn_gone(admin, reserved);
}

/* Answers. */

/* Pages of the dashboard may load files from this address only; a browser must not render any other answer. */
static void put_browser_fields(struct text_sink *out, const struct admin_answer *answer)
{
    text_put_chars(out, answer->runs ? "content-security-policy: default-src 'self'; object-src 'none'; "
                                     : "content-security-policy: default-src 'none'; ");
    text_put_chars(out, "frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n"
                        "x-content-type-options: nosniff\r\n"
                        "cross-origin-resource-policy: same-origin\r\n"
                        "referrer-policy: no-referrer\r\n");
    text_put_chars(out, answer->runs ? "cache-control: no-cache\r\n" : "cache-control: no-store\r\n");
    if (answer->etag[0] != '\0') {
        h1_put_field(out, "etag", text_of(answer->etag));
        text_put_chars(out, "vary: accept\r\n");
    }
}

static void put_fields(struct text_sink *out, const struct admin_answer *answer)
{
    h1_put_field(out, "content-type", text_of(answer->type));
    if (!answer->streams && answer->status != 304) {
        h1_put_number_field(out, "content-length", answer->page.length);
    }
    if (answer->allow != NULL) {
        h1_put_field(out, "allow", text_of(answer->allow));
    }
    if (answer->ask_token) {
        text_put_chars(out, "www-authenticate: Bearer realm=\"becalm\"\r\n");
    }
    put_browser_fields(out, answer);
}

/* Unsent events wait here and not in the socket, which would hold minutes of events for a client that reads none. */
static void keep_unsent_short(const struct admin_conn *conn)
{
    int bytes = STREAM_UNSENT;
    if (conn->local.any.sa_family != AF_UNIX) {
        setsockopt(conn->wire.source.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
    }
}

/* conn->answer is ready: writes its head, and begins to send. */
static void answer_begin(struct admin_conn *conn, bool to_head)
{
    struct admin_answer *answer = &conn->answer;
    struct loop *loop = conn->admin->place.loop;
    char date[30];
    if (to_head || conn->reserved) {
        answer->streams = false; /* a head alone, or a descriptor that is needed back */
    }
    if (answer->page.full) {
        answer->streams = false;
        buffer_free(&answer->page);
        admin_problem(answer, 500, "There is no memory for the page.");
    }
    struct text_sink out = {.at = conn->out_head, .size = OUT_HEAD};
    date_write(date, (int64_t)(loop->wall / BECALM_S));
    conn->keep = conn->keep && !conn->reserved && !conn->quiet && !answer->streams;
    conn->admin->stream_count += answer->streams;
    if (answer->streams) {
        keep_unsent_short(conn);
    }
    h1_put_status(&out, answer->status);
    h1_put_field(&out, "date", text_of(date));
    put_fields(&out, answer);
    text_put_chars(&out, conn->keep ? "\r\n" : "connection: close\r\n\r\n");
    BECALM_ASSERT(!out.full);
    conn->out_head_length = out.length;
    conn->sent = 0;
    if (to_head) {
        buffer_free(&answer->page);
    }
    enter(conn, CONN_WRITE, HEAD_TIME);
}

/* An answer to a malformed request: the connection ends with it. */
static void refuse(struct admin_conn *conn, uint32_t status, const char *sentence)
{
    conn->keep = false;
    admin_problem(&conn->answer, status, sentence);
    answer_begin(conn, false);
}

/* Requests. */

static struct admin_request request_of(struct admin_conn *conn)
{
    struct h1_target target = {0};
    conn->head.bytes = conn->in.at; /* which may have moved */
    struct admin_request request = {
        .head = &conn->head,
        .method = head_method(&conn->head),
        .body = {conn->body_bytes.length == 0 ? "" : conn->body_bytes.at, conn->body_bytes.length},
        .local = &conn->local,
    };
    bool connect = request.method.length == 7 && memcmp(request.method.at, "CONNECT", 7) == 0;
    if (h1_target_split(head_target(&conn->head), connect, &target) && target.path.at != NULL) {
        const char *mark = memchr(target.path.at, '?', target.path.length);
        request.path = target.path;
        if (mark != NULL) {
            request.path.length = (size_t)(mark - target.path.at);
            request.query = (struct becalm_text){mark + 1, target.path.length - request.path.length - 1};
        }
    }
    return request;
}

static bool is_head(const struct admin_request *request)
{
    return request->method.length == 4 && memcmp(request->method.at, "HEAD", 4) == 0;
}

/* The head is here. A request that can be refused is refused before its body comes. */
static void head_done(struct admin_conn *conn)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct admin_request request = request_of(conn);
    conn->keep = conn->head.keep_alive;
    conn->answer = (struct admin_answer){.page = {.bytes_max = ADMIN_PAGE_MAX}};
    h1_body_init(&conn->body, &conn->head);
    if (conn->head.framing == BODY_LENGTH && conn->head.content_length > ADMIN_BODY_MAX) {
        refuse(conn, 413, "A body has at most 64 KiB here.");
    } else if (!admin_route_check(conn->admin, &request, &conn->answer)) {
        conn->keep = conn->keep && conn->body.ended; /* else the body would still come, and is not wanted */
        answer_begin(conn, is_head(&request));
    } else {
        enter(conn, CONN_BODY, HEAD_TIME);
        if (conn->head.expects_continue && !conn->body.ended) {
            struct iovec part = {(char *)(uintptr_t)go_on, sizeof go_on - 1};
            wire_send(&conn->wire, &part, 1); /* a socket that can't take it now is broken, and reading will say so */
        }
    }
}

static void request_done(struct admin_conn *conn)
{
    struct admin_request request = request_of(conn);
    admin_route_answer(conn->admin, &request, &conn->answer);
    answer_begin(conn, is_head(&request));
}

/* True: something changed, so go on. False: more bytes are needed. */
static bool take_head(struct admin_conn *conn)
{
    struct h1_limits limits = {.head_bytes = ADMIN_HEAD_MAX};
    struct buffer *in = &conn->in;
    if (conn->scanned == 0) {
        size_t blank = h1_leading_blank(in->at, in->length);
        in->length -= blank;
        if (blank > 0) {
            memmove(in->at, in->at + blank, in->length);
        }
    }
    if (in->length == 0) {
        return false;
    }
    if (conn->state == CONN_IDLE) {
        enter(conn, CONN_HEAD, HEAD_TIME);
    }
    size_t length = h1_head_end(in->at, in->length, conn->scanned);
    conn->scanned = in->length;
    if (length == 0 && in->length <= limits.head_bytes) {
        return false;
    }
    conn->scanned = 0;
    struct h1_verdict verdict = h1_parse_request(in->at, length == 0 ? in->length : length, &limits, &conn->head);
    if (verdict.kind == H1_OK) {
        head_done(conn);
    } else {
        conn->answer = (struct admin_answer){.page = {.bytes_max = ADMIN_PAGE_MAX}};
        conn->head.length = (uint32_t)in->length;
        refuse(conn, verdict.status, verdict.what);
    }
    return true;
}

/* NULL, or the error. */
static const char *trailers_wrong(const struct admin_conn *conn)
{
    const struct buffer *trailers = &conn->trailers;
    if (trailers->full) {
        return "there is no memory for the trailers";
    }
    return h1_trailers_wrong(trailers->at, trailers->length);
}

static bool take_body(struct admin_conn *conn)
{
    struct buffer *in = &conn->in;
    const char *at = in->at + conn->head.length;
    const char *end = in->at + in->length;
    struct h1_piece piece = h1_body_next(&conn->body, &at, end);
    while (piece.kind == H1_PIECE_DATA || piece.kind == H1_PIECE_TRAILER) {
        buffer_bytes(piece.kind == H1_PIECE_DATA ? &conn->body_bytes : &conn->trailers, piece.at, piece.length);
        piece = h1_body_next(&conn->body, &at, end);
    }
    const char *wrong = piece.kind == H1_PIECE_END ? trailers_wrong(conn) : piece.what;
    size_t rest = (size_t)(end - at); /* the next request, if anything */
    memmove(in->at + conn->head.length, at, rest);
    in->length = conn->head.length + rest;
    if (wrong != NULL) {
        refuse(conn, 400, wrong);
    } else if (conn->body_bytes.full) {
        refuse(conn, 413, "A body has at most 64 KiB here.");
    } else if (piece.kind == H1_PIECE_END) {
        request_done(conn);
    } else {
        return false;
    }
    return true;
}

/* Sends the rest of the answer. False: the socket accepts no more now, or the connection is gone. */
static bool flush(struct admin_conn *conn)
{
    size_t total = conn->out_head_length + conn->answer.page.length;
    while (conn->sent < total) {
        size_t head = conn->sent < conn->out_head_length ? conn->sent : conn->out_head_length;
        size_t page = conn->sent - head;
        struct iovec part[2] = {
            {conn->out_head + head, conn->out_head_length - head},
            {conn->answer.page.length == 0 ? NULL : conn->answer.page.at + page, conn->answer.page.length - page},
        };
        ssize_t sent = wire_send(&conn->wire, part, 2);
        if (sent == WIRE_BROKEN) {
            admin_conn_close(conn);
        }
        if (sent <= 0) {
            return false;
        }
        conn->sent += (size_t)sent;
        enter(conn, CONN_WRITE, HEAD_TIME);
    }
    if (wire_blocked(&conn->wire) && wire_write(&conn->wire, NULL, 0) < 0) { /* TLS may hold encrypted bytes */
        admin_conn_close(conn);
        return false;
    }
    return !wire_blocked(&conn->wire);
}

/* The answer is out: the next request, or goodbye. */
static void answer_done(struct admin_conn *conn)
{
    struct buffer *in = &conn->in;
    buffer_free(&conn->answer.page);
    buffer_free(&conn->body_bytes);
    buffer_free(&conn->trailers);
    if (conn->answer.streams) {
        enter(conn, CONN_STREAM, BECALM_NEVER);
        return;
    }
    if (!conn->keep) {
        buffer_free(in);
        wire_shut(&conn->wire);
        enter(conn, CONN_LINGER, LINGER);
        return;
    }
    in->length -= conn->head.length;
    memmove(in->at, in->at + conn->head.length, in->length);
    if (in->length == 0) {
        buffer_free(in); /* an idle one owns nothing */
    }
    enter(conn, CONN_IDLE, IDLE_TIME);
}

/* Handshake and head have one time limit. But for its place and its descriptor, each step of the handshake counts, and
 * the first byte of the head, so that a client on a long way is not taken for a silent one. More bytes do not count. */
static void note_progress(struct admin_conn *conn)
{
    uint32_t steps = wire_shake_steps(&conn->wire) + (conn->in.length > 0);
    if (steps > conn->steps) {
        conn->steps = steps;
        conn->since = loop_clock(conn->admin->place.loop);
    }
}

/* Reads once. False: nothing more for now, or the connection is gone. */
static bool receive(struct admin_conn *conn)
{
    char bytes[READ];
    wire_again(&conn->wire);
    ssize_t got = wire_read(&conn->wire, bytes, sizeof bytes);
    if (got == WIRE_ALIEN) {
        conn->answer = (struct admin_answer){.page = {.bytes_max = ADMIN_PAGE_MAX}};
        refuse(conn, 400, "Plain HTTP was sent to an address that speaks TLS: write https://.");
        return true;
    }
    if (got == WIRE_BROKEN && wire_failed(&conn->wire) && conn->state != CONN_LINGER) {
        wire_shut(&conn->wire); /* so that it can read TLS's word for it */
        enter(conn, CONN_LINGER, LINGER);
        return false;
    }
    if (got > 0 && conn->state != CONN_LINGER && conn->state != CONN_STREAM) {
        buffer_bytes(&conn->in, bytes, (size_t)got);
    }
    note_progress(conn);
    if (got == WIRE_END || got == WIRE_BROKEN || conn->in.full) {
        admin_conn_close(conn);
        return false;
    }
    return got > 0;
}

/* Goes on as far as it can without waiting. The sockets are edge-triggered, so it ends only where one says EAGAIN, or
 * goes on later: signals, reloads and requests of other clients wait for this thread. */
static void go_on(struct admin_conn *conn)
{
    for (int turn = 0;; turn++) {
        bool took = false;
        if (turn == TURN) {
            loop_later(conn->admin->place.loop, &conn->task);
            return;
        }
        switch (conn->state) {
        case CONN_IDLE:
        case CONN_HEAD:
            took = conn->in.length > 0 && take_head(conn);
            break;
        case CONN_BODY:
            took = take_body(conn);
            break;
        case CONN_WRITE:
            if (!flush(conn)) {
                return;
            }
            answer_done(conn);
            took = true;
            break;
        case CONN_STREAM:
        case CONN_LINGER:
            break;
        }
        if (!took && !receive(conn)) {
            return;
        }
    }
}

static void goes_on(struct task *task)
{
    go_on(CONTAINER_OF(task, struct admin_conn, task));
}

static void ready(struct source *source, uint32_t events)
{
    (void)events; /* reading or writing finds out which event it was */
    go_on(CONTAINER_OF(source, struct admin_conn, wire.source));
}

static void timer_fires(struct timer *timer)
{
    struct admin_conn *conn = CONTAINER_OF(timer, struct admin_conn, timer);
    wire_shake_late(&conn->wire);
    if ((conn->state == CONN_HEAD && conn->in.length > 0) || conn->state == CONN_BODY) {
        conn->head.length = (uint32_t)conn->in.length;
        conn->answer = (struct admin_answer){.page = {.bytes_max = ADMIN_PAGE_MAX}};
        refuse(conn, 408, "The request did not arrive in time.");
        go_on(conn);
    } else {
        admin_conn_close(conn);
    }
}

/* Coming and going. */

void admin_conn_accept(struct admin *admin, int fd, bool reserved)
{
    int on = 1;
    socklen_t length = sizeof(union address_socket);
    struct admin_conn *conn = calloc(1, sizeof *conn);
    if (conn == NULL) {
        close(fd);
        admin_conn_gone(admin, reserved);
        return;
    }
    conn->wire.source = (struct source){.ready = ready, .fd = fd};
    conn->timer.fire = timer_fires;
    conn->task.run = goes_on;
    conn->admin = admin;
    conn->reserved = reserved;
    conn->in.bytes_max = ADMIN_HEAD_MAX + ADMIN_BODY_MAX;
    conn->body_bytes.bytes_max = ADMIN_BODY_MAX;
    conn->trailers.bytes_max = H1_TRAILER_BYTES; /* the decoder gives no more */
    conn->next = admin->conns;
    conn->link = &admin->conns;
    if (conn->next != NULL) {
        conn->next->link = &conn->next;
    }
    admin->conns = conn;
    admin->conn_count++;
    const struct gateway *gateway = admin->place.gateway;
    const struct snapshot *snapshot = gateway == NULL ? NULL : gateway->snapshot; /* this thread alone replaces it */
    struct tls_context *tls = snapshot == NULL || snapshot->tls == NULL ? NULL : snapshot->tls->admin;
    if (getsockname(fd, &conn->local.any, &length) != 0 || loop_watch(admin->place.loop, &conn->wire.source) != 0 ||
        (tls != NULL && !wire_tls_accept(&conn->wire, tls, &admin->sealed))) {
        admin_conn_close(conn);
        return;
    }
    if (conn->local.any.sa_family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    enter(conn, CONN_HEAD, HEAD_TIME);
    go_on(conn); /* reads bytes that have arrived already, before another connection may take this one's place */
}

/* The worth of a connection when a new one needs its place: the lowest is closed first. */
enum worth {
    WORTH_NOTHING, /* had its answer, or was refused */
    WORTH_LITTLE,  /* any client can have this: silent, half a head, between requests, or a page that is open to all */
    WORTH_MUCH     /* in the middle of a request that needed the token */
};

static enum worth worth(const struct admin_conn *conn)
{
    switch (conn->state) {
    case CONN_HEAD:
        return WORTH_LITTLE;
    case CONN_IDLE:
        return conn->answer.status >= 400 ? WORTH_NOTHING : WORTH_LITTLE;
    case CONN_BODY:
    case CONN_WRITE:
    case CONN_STREAM:
        return conn->answer.is_known ? WORTH_MUCH : WORTH_LITTLE;
    case CONN_LINGER:
        return WORTH_NOTHING;
    }
    BECALM_UNREACHABLE();
}

/* Of those that are worth this, the one without progress for longest. The list has the latest first, so that of those
 * that moved in one wake-up it is the one that came first. NULL: there is none. */
static struct admin_conn *stalest(const struct admin *admin, enum worth which)
{
    struct admin_conn *found = NULL;
    for (struct admin_conn *conn = admin->conns; conn != NULL; conn = conn->next) {
        if (worth(conn) == which && (found == NULL || conn->since <= found->since)) {
            found = conn;
        }
    }
    return found;
}

/* A probe of /healthz looks like any other connection until its head is here. So the newest connections stay, and
 * connections with a token leave ADMIN_CONNS_OPEN places for new ones: a flood can only delay the probe. */
static struct admin_conn *cheapest(const struct admin *admin)
{
    struct admin_conn *found = stalest(admin, WORTH_NOTHING);
    uint32_t others = 0;
    for (const struct admin_conn *conn = admin->conns; conn != NULL; conn = conn->next) {
        others += worth(conn) != WORTH_MUCH;
    }
    if (found == NULL && others >= ADMIN_CONNS_OPEN) {
        found = stalest(admin, WORTH_LITTLE);
    }
    if (found == NULL) {
        found = stalest(admin, WORTH_MUCH);
    }
    return found == NULL ? stalest(admin, WORTH_LITTLE) : found;
}

static struct admin_conn *idle(const struct admin *admin)
{
    struct admin_conn *found = stalest(admin, WORTH_NOTHING);
    if (found == NULL) {
        found = stalest(admin, WORTH_LITTLE);
        found = found != NULL && becalm_ns_since(admin->place.loop->now, found->since) >= SPEAK_TIME ? found : NULL;
    }
    return found;
}

/* Its event may be behind that of the listener. True: it was heard, so choose again. */
static bool hear(struct admin_conn *conn)
{
    uint64_t turn = conn->admin->place.loop->turns;
    bool reads = conn->state == CONN_HEAD || conn->state == CONN_IDLE || conn->state == CONN_BODY;
    if (!reads || conn->heard == turn || wire_peek_plain(&conn->wire) != WIRE_SPEAKS) {
        return false;
    }
    conn->heard = turn;
    go_on(conn); /* which may end it */
    return true;
}

void admin_conns_make_room(struct admin *admin)
{
    while (admin->conn_count == ADMIN_CONNS_MAX) {
        struct admin_conn *found = cheapest(admin);
        if (!hear(found)) {
            admin_conn_close(found);
        }
    }
}

bool admin_conns_give_up(struct admin *admin)
{
    uint32_t before = admin->conn_count;
    struct admin_conn *found = idle(admin);
    while (found != NULL && hear(found) && admin->conn_count == before) {
        found = idle(admin);
    }
    if (found != NULL && admin->conn_count == before) {
        admin_conn_close(found);
    }
    return admin->conn_count < before;
}

void admin_conns_quiet(struct admin *admin)
{
    struct admin_conn *next;
    for (struct admin_conn *conn = admin->conns; conn != NULL; conn = next) {
        next = conn->next;
        conn->quiet = true;
        conn->keep = false;
        if (conn->state == CONN_IDLE || conn->state == CONN_HEAD || conn->answer.streams) {
            admin_conn_close(conn);
        }
    }
}

/* A client that has not read the previous event yet misses this one; one that reads nothing for HEAD_TIME is closed. */
void admin_tell(struct admin *admin)
{
    struct buffer event = {.bytes_max = ADMIN_PAGE_MAX};
    struct admin_conn *next;
    if (admin->stream_count == 0) {
        return;
    }
    admin_put_sample(admin, &event);
    buffer_chars(&event, "\n\n");
    for (struct admin_conn *conn = admin->conns; conn != NULL && !event.full; conn = next) {
        next = conn->next;
        if (conn->state == CONN_STREAM) {
            buffer_chars(&conn->answer.page, "data: ");
            buffer_bytes(&conn->answer.page, event.at, event.length);
            conn->sent = conn->out_head_length;
            enter(conn, CONN_WRITE, HEAD_TIME);
            go_on(conn);
        }
    }
    buffer_free(&event);
}
