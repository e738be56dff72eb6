/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "wire_tls.h"

#include "container.h"
#include "libssl/libssl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_IN     (64u * 1024)
#define ROOM_OUT    (64u * 1024)
#define RECORD      (16u * 1024) /* the most that TLS puts into one */
#define RECORD_ROOM (RECORD + 512u)
#define SHORT       (4u * 1024)  /* the first records of an answer, which can be opened as soon as they have come */
#define SHORT_UNTIL (64u * 1024) /* then they are long */
#define HELD_MAX    (64u * 1024) /* of TLS's own messages to a peer that does not read */
#define TALK_MAX    32u          /* records in a row without data (new keys, tickets), which cost only us CPU time */

enum tls_state {
    TLS_SHAKING,
    TLS_OPEN,
    TLS_OVER /* the handshake or a record failed: later bytes are thrown away */
};

struct wire_tls {
    struct tls_link link; /* first */
    SSL *ssl;
    struct wire *wire; /* the wire of the present operation: a wire may move in memory */
    struct wire_room *room;
    struct tls_context *context;
    struct wire_host *host; /* NULL: we are the server */
    const char *at;         /* sealed bytes that were read from the socket, during an operation */
    const char *end;
    struct bytes in;   /* those that were left over from it */
    struct bytes held; /* TLS's own messages that the socket did not take */
    ssize_t sent;      /* bytes that the socket took in this operation; WIRE_BROKEN, WIRE_TORN, WIRE_FULL */
    const char *why;   /* the handshake failed */
    uint64_t word;     /* the owner's */
    uint32_t streak;   /* bytes written since the peer spoke last */
    uint32_t talk;     /* records since then that are nothing but TLS */
    uint32_t steps;    /* of the handshake */
    enum tls_state state;
    bool writes; /* the operation is a write: bytes that the socket does not take wait in the wire's `out` */
    bool ended;  /* the socket gave its end */
    bool cut;    /* without TLS's own end before it */
    bool due;    /* behind the bytes that were read last, OpenSSL has an end or an error to tell */
    bool own;    /* `at` points into `in` */
    bool heard;  /* a first byte has come */
    bool spoke;  /* the peer has sent something for us */
    bool quiet;  /* the connection is aborted, so no close_notify is sent */
    bool lost;   /* the handshake ended with the connection */
};

/* Sending. */

/* Sends the encrypted bytes; those that the socket does not take are kept, after the bytes that wait already. */
static void spill(struct wire_tls *tls)
{
    struct wire_room *room = tls->room;
    struct bytes *rest = tls->writes ? &tls->wire->out : &tls->held;
    size_t length = room->out_length;
    ssize_t sent = 0;
    room->out_length = 0;
    if (tls->sent < 0 || length == 0) {
        return;
    }
    if (bytes_left(&tls->held) == 0 && bytes_left(&tls->wire->out) == 0) {
        sent = wire_send_plain(tls->wire, &(struct iovec){room->out, length}, 1);
        if (sent < 0) {
            tls->sent = wire__broken(tls->sent);
            return;
        }
        tls->sent += sent;
    }
    size_t left = length - (size_t)sent;
    if (left > 0 && (bytes_left(&tls->held) + left > HELD_MAX && !tls->writes)) {
        tls->sent = WIRE_BROKEN; /* the peer keeps asking, and reads no answer */
    } else if (left > 0 && !bytes_add(rest, room->out + sent, left)) {
        tls->sent = WIRE_FULL;
    }
}

/* OpenSSL reads and writes through this. This BIO accepts all writes, so that OpenSSL never has to repeat one. */

static int bio_write(BIO *bio, const char *bytes, int length)
{
    struct wire_tls *tls = BIO_get_data(bio);
    struct wire_room *room = tls->room;
    size_t left = (size_t)length;
    while (left > 0) {
        size_t piece = left < ROOM_OUT - room->out_length ? left : ROOM_OUT - room->out_length;
        memcpy(room->out + room->out_length, bytes, piece);
        room->out_length += piece;
        bytes += piece;
        left -= piece;
        if (room->out_length == ROOM_OUT) {
            spill(tls);
        }
    }
    return length;
}

static int bio_read(BIO *bio, char *into, int size)
{
    struct wire_tls *tls = BIO_get_data(bio);
    size_t have = (size_t)(tls->end - tls->at);
    BIO_clear_retry_flags(bio);
    if (have == 0) {
        if (!tls->ended) {
            BIO_set_retry_read(bio);
        }
        return tls->ended ? 0 : -1;
    }
    size_t piece = have < (size_t)size ? have : (size_t)size;
    memcpy(into, tls->at, piece);
    tls->at += piece;
    return (int)piece;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    const struct wire_tls *tls = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    if (command == BIO_CTRL_EOF) {
        return tls->ended && tls->at == tls->end;
    }
    return command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP;
}

static BIO_METHOD *method; /* made once, and kept until the end of the process */

static void method_make(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    if (method != NULL) {
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_ctrl(method, bio_ctrl);
    }
}

static bool room_ready(struct wire_room *room)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (room->in != NULL) {
        return true;
    }
    pthread_once(&once, method_make);
    room->in = malloc(ROOM_IN);
    room->out = malloc(ROOM_OUT);
    room->plain = malloc(RECORD);
    room->bio = method == NULL ? NULL : BIO_new(method);
    if (room->in == NULL || room->out == NULL || room->plain == NULL || room->bio == NULL) {
        wire_room_free(room);
        return false;
    }
    BIO_set_init(room->bio, 1);
    return true;
}

void wire_room_free(struct wire_room *room)
{
    free(room->in);
    free(room->out);
    free(room->plain);
    if (room->bio != NULL) { /* else there was no TLS, and OpenSSL is not loaded for that */
        BIO_free(room->bio);
    }
    room->in = room->out = room->plain = NULL;
    room->bio = NULL;
}

/* Sessions of hosts. */

struct wire_host *wire_host_make(struct tls_context *context, const char *name)
{
    struct wire_host *host = calloc(1, sizeof *host);
    if (host == NULL || (host->name = strdup(name)) == NULL) {
        free(host);
        return NULL;
    }
    host->users = 1;
    host->context = tls_context_use(context);
    return host;
}

void wire_host_drop(struct wire_host *host)
{
    if (host == NULL || --host->users > 0) {
        return;
    }
    SSL_SESSION_free(host->session);
    tls_context_drop(host->context);
    free(host->name);
    free(host);
}

static void keep_session(struct tls_link *link, SSL_SESSION *session)
{
    struct wire_tls *tls = CONTAINER_OF(link, struct wire_tls, link);
    SSL_SESSION_free(tls->host->session);
    tls->host->session = session;
}

/* Beginning and end. */

static bool begin(struct wire *wire, struct tls_context *context, SSL *ssl, struct wire_host *host,
                  struct wire_room *room)
{
    struct wire_tls *tls = calloc(1, sizeof *tls);
    if (ssl == NULL || tls == NULL || !room_ready(room)) {
        SSL_free(ssl);
        free(tls);
        return false;
    }
    BIO_set_data(room->bio, tls);
    BIO_up_ref(room->bio);
    SSL_set_bio(ssl, room->bio, room->bio);
    SSL_set_app_data(ssl, tls);
    *tls = (struct wire_tls){
        .link = {keep_session},
        .ssl = ssl,
        .room = room,
        .context = tls_context_use(context),
        .host = host,
    };
    wire->tls = tls;
    return true;
}

bool wire_tls_accept(struct wire *wire, struct tls_context *context, struct wire_room *room)
{
    return begin(wire, context, tls_context_accept(context), NULL, room);
}

/* False: no memory. */
static bool offer(SSL *ssl, enum wire_offer offers)
{
    static const unsigned char both[] = "\x02h2\x08http/1.1";
    const unsigned h2 = 3; /* bytes of it */
    const unsigned char *at = offers == WIRE_OFFERS_H1 ? both + h2 : both;
    unsigned length = offers == WIRE_OFFERS_H2 ? h2 : (unsigned)(both + sizeof both - 1 - at);
    return SSL_set_alpn_protos(ssl, at, length) == 0;
}

bool wire_tls_connect(struct wire *wire, struct wire_host *host, enum wire_offer offers, struct wire_room *room)
{
    SSL *ssl = tls_context_connect(host->context, host->name);
    if (ssl != NULL && !offer(ssl, offers)) {
        SSL_free(ssl);
        ssl = NULL;
    }
    if (ssl != NULL && host->session != NULL) {
        SSL_set_session(ssl, host->session);
    }
    if (!begin(wire, host->context, ssl, host, room)) {
        return false;
    }
    host->users++;
    return true;
}

static void operation_begin(struct wire *wire, bool writes)
{
    struct wire_tls *tls = wire->tls;
    tls->wire = wire;
    tls->writes = writes;
    tls->sent = 0;
    tls->at = tls->end = NULL;
    BIO_set_data(tls->room->bio, tls);
    if (ERR_peek_error() != 0) { /* to clear an empty list costs as much as to seal a small record */
        ERR_clear_error();
    }
}

void wire__tls_free(struct wire *wire)
{
    struct wire_tls *tls = wire->tls;
    operation_begin(wire, false);
    if (tls->state == TLS_OPEN && !tls->quiet && bytes_left(&wire->out) == 0 && wire->source.fd >= 0) {
        SSL_shutdown(tls->ssl); /* as far as the socket takes it */
        spill(tls);
    }
    SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* else its session could not be resumed */
    SSL_free(tls->ssl);
    bytes_free(&tls->in);
    bytes_free(&tls->held);
    tls_context_drop(tls->context);
    wire_host_drop(tls->host);
    free(tls);
    wire->tls = NULL;
    ERR_clear_error();
}

/* Reading. */

/* Earlier messages go first. False: broken. */
static bool flush_held(struct wire_tls *tls)
{
    struct bytes *held = &tls->held;
    if (bytes_left(held) == 0) {
        return true;
    }
    ssize_t sent = wire_send_plain(tls->wire, &(struct iovec){held->at + held->from, bytes_left(held)}, 1);
    if (sent < 0) {
        return false;
    }
    held->from += (uint32_t)sent;
    if (bytes_left(held) == 0) {
        bytes_free(held);
    }
    return true;
}

static void fill_from(struct wire_tls *tls, const char *at, size_t length, bool own)
{
    tls->at = at;
    tls->end = at + length;
    tls->own = own;
}

/* Reads sealed bytes from the socket into the room. Bytes, WIRE_END, WIRE_LATER, WIRE_BROKEN. */
static ssize_t receive(struct wire_tls *tls, size_t size)
{
    size_t room = size < RECORD_ROOM ? RECORD_ROOM : size < ROOM_IN ? size : ROOM_IN;
    ssize_t got = wire_read_plain(tls->wire, tls->room->in, room);
    if (got > 0) {
        bytes_free(&tls->in);
        fill_from(tls, tls->room->in, (size_t)got, false);
    }
    tls->ended |= got == WIRE_END;
    return got;
}

/* Keeps the bytes that OpenSSL has not read for the next time, because all wires share the room. False: no memory. */
static bool keep_rest(struct wire_tls *tls)
{
    size_t left = (size_t)(tls->end - tls->at);
    if (left == 0) {
        bytes_free(&tls->in);
    } else if (tls->own) {
        tls->in.from = tls->in.length - (uint32_t)left;
    } else {
        return bytes_add(&tls->in, tls->at, left);
    }
    return true;
}

static enum tls_side side_of(const struct wire_tls *tls)
{
    return tls->host == NULL ? TLS_CLIENTS : TLS_HOSTS;
}

static void shake_ended(struct wire_tls *tls, enum tls_result result)
{
    tls_count(tls->room->counts, side_of(tls), result);
}

static enum tls_result result_of_error(const struct wire_tls *tls)
{
    unsigned long error = ERR_peek_last_error();
    int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
    switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
        return TLS_NO_CERTIFICATE;
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return TLS_BAD_CERTIFICATE;
    case SSL_R_CALLBACK_FAILED: /* the one that chooses a certificate */
        return TLS_UNKNOWN_NAME;
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_NO_APPLICATION_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_WRONG_SSL_VERSION:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
        return TLS_NO_COMMON;
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_WRONG_VERSION_NUMBER:
        return TLS_PLAIN;
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
        return TLS_CLOSED;
    default:
        break;
    }
    if (reason >= SSL_AD_REASON_OFFSET) {
        return TLS_ALERT;
    }
    return tls->ended ? TLS_CLOSED : TLS_BROKEN;
}

/* The words for it, which live as long as the process. */
static const char *why_of_error(const struct wire_tls *tls, enum tls_result result)
{
    unsigned long error = ERR_peek_last_error();
    if (result == TLS_BAD_CERTIFICATE) {
        return X509_verify_cert_error_string(SSL_get_verify_result(tls->ssl));
    }
    if (result == TLS_UNKNOWN_NAME) {
        return "no certificate has the name that the client asks for";
    }
    const char *text = ERR_reason_error_string(error);
    return text == NULL ? "the connection broke" : text;
}

/* OpenSSL says that nothing more comes of this. Its alert, if there is one, is sent. */
static ssize_t fail(struct wire_tls *tls)
{
    if (tls->state == TLS_SHAKING) {
        enum tls_result result = result_of_error(tls);
        tls->lost = result == TLS_CLOSED;
        tls->why = tls->lost ? NULL : why_of_error(tls, result);
        shake_ended(tls, result);
    }
    tls->state = TLS_OVER;
    spill(tls);
    tls->wire->source.readable = true; /* an owner that waits until the peer has read the alert reads to the end */
    ERR_clear_error();
    return WIRE_BROKEN;
}

/* The socket is broken. */
static ssize_t lose(struct wire_tls *tls)
{
    if (tls->state == TLS_SHAKING) {
        tls->lost = true;
        shake_ended(tls, TLS_CLOSED);
    }
    tls->state = TLS_OVER;
    return WIRE_BROKEN;
}

/* Is the handshake done? */
static void look_shaken(struct wire_tls *tls)
{
    if (tls->state == TLS_SHAKING && SSL_is_init_finished(tls->ssl)) {
        tls->state = TLS_OPEN;
        shake_ended(tls, SSL_session_reused(tls->ssl) ? TLS_RESUMED : TLS_FULL);
    }
}

/* The socket's end has come, or TLS's own. */
static ssize_t end(struct wire_tls *tls, bool told)
{
    tls->cut = !told;
    tls->wire->source.ended = true;
    tls->wire->source.readable = false;
    return WIRE_END;
}

/* OpenSSL gave no data. True: it wants more encrypted bytes; else *result says how the connection ended. */
static bool wants_more(struct wire_tls *tls, int rc, ssize_t *result)
{
    switch (SSL_get_error(tls->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return true;
    case SSL_ERROR_ZERO_RETURN:
        *result = end(tls, true);
        return false;
    default:
        *result = tls->state == TLS_OPEN && tls->ended && tls->at == tls->end ? end(tls, false) : fail(tls);
        return false;
    }
}

/* The first byte of a client that does not speak TLS. */
static bool is_alien(struct wire_tls *tls)
{
    bool first = !tls->heard;
    tls->heard = true;
    return first && tls->host == NULL && tls->at < tls->end && tls->at[0] != 0x16;
}

/* Bytes after the end of TLS are thrown away. */
static ssize_t drain(struct wire_tls *tls)
{
    ssize_t got = WIRE_LATER;
    for (int i = 0; i < 4 && wire_readable(tls->wire); i++) {
        got = receive(tls, ROOM_IN);
    }
    return got > 0 ? WIRE_LATER : got;
}

/* More data may be available without reading the socket. */
static void note_more(struct wire_tls *tls)
{
    tls->wire->source.readable |= SSL_pending(tls->ssl) > 0 || tls->at < tls->end || tls->due;
}

/* OpenSSL wants more, and gave no data for the bytes that it has taken since `from`. Were they a whole record of an
 * open connection? Then the record was one of TLS's own messages. */
static bool is_talk(const struct wire_tls *tls, const char *from)
{
    return tls->state == TLS_OPEN && tls->at != from && (tls->at < tls->end || SSL_has_pending(tls->ssl) == 0);
}

/* Has OpenSSL nothing to open, so that to call it would be in vain? */
static bool lacks_bytes(const struct wire_tls *tls)
{
    return tls->state == TLS_OPEN && tls->at == tls->end && SSL_pending(tls->ssl) == 0 && !tls->due;
}

/* Calls OpenSSL, and reads from the socket when it wants more. `size` 0 is for the handshake alone, and gives 1. */
static ssize_t read_or_shake(struct wire_tls *tls, char *into, size_t size, bool peeks)
{
    size_t total = 0;
    ssize_t result;
    fill_from(tls, bytes_at(&tls->in), bytes_left(&tls->in), true);
    if (lacks_bytes(tls) && wire_readable(tls->wire) && (result = receive(tls, size)) < 0) {
        return result == WIRE_LATER ? result : lose(tls);
    }
    for (;;) {
        const char *from = tls->at;
        int rc = size == 0 ? SSL_do_handshake(tls->ssl)
                 : peeks   ? SSL_peek(tls->ssl, into, (int)size)
                           : SSL_read(tls->ssl, into + total, (int)(size - total));
        look_shaken(tls);
        if (rc > 0 && size > 0) {
            tls->spoke = true;
            tls->streak = tls->talk = 0;
            total += (size_t)rc;
        }
        if (rc > 0 && total < size && !peeks && !lacks_bytes(tls)) {
            continue;
        }
        if (rc > 0 || total > 0) {
            /* An error other than a lack of bytes also stops the next read, which then reports it. */
            tls->due = rc <= 0 && SSL_get_error(tls->ssl, rc) != SSL_ERROR_WANT_READ;
            note_more(tls);
            return size == 0 ? 1 : (ssize_t)total;
        }
        if (!wants_more(tls, rc, &result)) {
            return result;
        }
        if (is_talk(tls, from) && ++tls->talk > TALK_MAX) {
            return fail(tls);
        }
        if (tls->at != from && tls->at < tls->end) {
            continue; /* OpenSSL returns after each record without application data */
        }
        result = wire_readable(tls->wire) ? receive(tls, size) : WIRE_LATER;
        if (result == WIRE_BROKEN) {
            return lose(tls);
        }
        if (result == WIRE_LATER) {
            return result;
        }
        if (is_alien(tls)) {
            return WIRE_ALIEN;
        }
    }
}

/* One turn of reading, from its beginning to its end. */
static ssize_t turn(struct wire *wire, char *into, size_t size, bool peeks)
{
    struct wire_tls *tls = wire->tls;
    operation_begin(wire, false);
    if (tls->state == TLS_OVER) {
        return drain(tls);
    }
    if (!flush_held(tls)) {
        return WIRE_BROKEN;
    }
    bool shaking = tls->state == TLS_SHAKING;
    ssize_t got = read_or_shake(tls, into, size, peeks);
    tls->steps += shaking && (tls->room->out_length > 0 || tls->state != TLS_SHAKING);
    spill(tls);
    if (got == WIRE_ALIEN) {
        return got;
    }
    if (!keep_rest(tls) || (tls->sent < 0 && got == WIRE_LATER)) {
        return WIRE_BROKEN;
    }
    if (bytes_left(&tls->held) > 0 && !tls->spoke) {
        wire->source.readable = true; /* the next event, also of a socket that takes bytes again, comes back here */
    }
    return got;
}

ssize_t wire__tls_read(struct wire *wire, char *into, size_t size)
{
    ssize_t got = turn(wire, into, size, false);
    if (got == WIRE_ALIEN) {
        bool text = wire->tls->at[0] >= 'A' && wire->tls->at[0] <= 'z';
        shake_ended(wire->tls, TLS_PLAIN);
        wire__tls_free(wire);
        return text ? WIRE_ALIEN : WIRE_BROKEN;
    }
    return got;
}

enum wire_shake wire_shake(struct wire *wire)
{
    struct wire_tls *tls = wire->tls;
    if (tls == NULL || tls->state == TLS_OPEN) {
        return WIRE_SHAKEN;
    }
    ssize_t got = turn(wire, NULL, 0, false);
    if (got > 0 || got == WIRE_LATER) {
        return got > 0 ? WIRE_SHAKEN : WIRE_SHAKING;
    }
    return tls->state == TLS_OVER && !tls->lost ? WIRE_UNSHAKEN : WIRE_LOST;
}

void wire_shake_late(struct wire *wire)
{
    struct wire_tls *tls = wire->tls;
    if (tls != NULL && tls->state == TLS_SHAKING) {
        tls->why = "the handshake took too long";
        tls->state = TLS_OVER;
        shake_ended(tls, TLS_TIMEOUT);
    }
}

uint32_t wire_shake_steps(const struct wire *wire)
{
    return wire->tls == NULL ? 0 : wire->tls->steps;
}

const char *wire_shake_why(const struct wire *wire)
{
    return wire->tls == NULL || wire->tls->why == NULL ? "the peer does not speak TLS" : wire->tls->why;
}

bool wire__tls_shakes(const struct wire *wire)
{
    return wire->tls->state == TLS_SHAKING;
}

bool wire__tls_over(const struct wire *wire)
{
    return wire->tls->state == TLS_OVER && wire->tls->why != NULL;
}

bool wire__tls_cut(const struct wire *wire)
{
    return wire->tls->cut;
}

bool wire__tls_left(const struct wire *wire)
{
    return SSL_pending(wire->tls->ssl) > 0 || bytes_left(&wire->tls->in) > 0 || wire->tls->due;
}

/* Tickets and the like are nothing to the owner. */
enum wire_sight wire__tls_peek(struct wire *wire)
{
    char byte;
    bool readable = wire->source.readable;
    enum wire_sight sight = wire_peek_plain(wire);
    if (sight == WIRE_GONE || wire->tls->state == TLS_OVER) {
        return WIRE_GONE;
    }
    if (sight == WIRE_QUIET && !wire__tls_left(wire)) {
        return WIRE_QUIET;
    }
    wire->source.readable = true;
    ssize_t got = turn(wire, &byte, 1, true);
    wire->source.readable |= readable;
    return got > 0 ? WIRE_SPEAKS : got == WIRE_LATER ? WIRE_QUIET : WIRE_GONE;
}

bool wire_chose_h2(const struct wire *wire)
{
    const unsigned char *name = NULL;
    unsigned length = 0;
    if (wire->tls != NULL && wire->tls->state == TLS_OPEN) {
        SSL_get0_alpn_selected(wire->tls->ssl, &name, &length);
    }
    return length == 2 && memcmp(name, "h2", 2) == 0;
}

bool wire_peer_names(const struct wire *wire, tls_name_fits *each, void *data)
{
    const struct wire_tls *tls = wire->tls;
    if (tls == NULL || !tls->context->verifies || tls->state != TLS_OPEN ||
        SSL_get_verify_result(tls->ssl) != X509_V_OK) {
        return false;
    }
    const X509 *x509 = SSL_get0_peer_certificate(tls->ssl);
    return x509 != NULL && tls_names_find(x509, 1u << TLS_NAME_URI | 1u << TLS_NAME_DNS, each, data);
}

uint64_t *wire_word(const struct wire *wire)
{
    return &wire->tls->word;
}

/* Writing. */

/* Seals some bytes. False: broken. */
static bool seal(struct wire_tls *tls, const char *bytes, size_t length)
{
    if (SSL_write(tls->ssl, bytes, (int)length) != (int)length) {
        ERR_clear_error();
        return false;
    }
    tls->streak += tls->streak < SHORT_UNTIL ? (uint32_t)length : 0;
    return tls->sent >= 0;
}

/* Seals parts, small ones together, large ones from where they are. At most `most` bytes; returns how many, or
 * WIRE_BROKEN. */
static ssize_t seal_parts(struct wire_tls *tls, const struct iovec *part, int count, size_t most)
{
    char *plain = tls->room->plain;
    size_t joined = 0;
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        const char *at = part[i].iov_base;
        size_t left = part[i].iov_len < most - total ? part[i].iov_len : most - total;
        while (left > 0) {
            size_t record = tls->streak < SHORT_UNTIL ? SHORT : RECORD;
            size_t piece = left < record - joined ? left : record - joined;
            bool last = i == count - 1 && piece == left;
            bool whole = joined == 0 && (piece == record || last);
            if (!whole) {
                memcpy(plain + joined, at, piece);
                joined += piece;
            }
            if ((whole || joined == record) && !seal(tls, whole ? at : plain, whole ? piece : record)) {
                return WIRE_BROKEN;
            }
            joined = joined == record ? 0 : joined;
            at += piece;
            left -= piece;
            total += piece;
        }
    }
    return joined > 0 && !seal(tls, plain, joined) ? WIRE_BROKEN : (ssize_t)total;
}

/* Bytes that were encrypted before go first. */
static ssize_t write_begin(struct wire *wire)
{
    struct wire_tls *tls = wire->tls;
    operation_begin(wire, true);
    if (tls->state != TLS_OPEN || !flush_held(tls)) {
        return WIRE_BROKEN;
    }
    return bytes_left(&tls->held) == 0 && wire_blocked(wire) ? wire_flush_plain(wire) : 0;
}

ssize_t wire__tls_write(struct wire *wire, const struct iovec *part, int count)
{
    struct wire_tls *tls = wire->tls;
    if (count == 0 && tls->state == TLS_SHAKING) {
        operation_begin(wire, true);
        return flush_held(tls) ? 0 : WIRE_BROKEN;
    }
    ssize_t flushed = write_begin(wire);
    if (flushed < 0) {
        return flushed;
    }
    tls->sent = flushed;
    if (seal_parts(tls, part, count, SIZE_MAX) < 0) {
        tls->room->out_length = 0; /* all wires share the room: the next operation may be that of another wire */
        return tls->sent < 0 ? tls->sent : wire__broken(tls->sent);
    }
    spill(tls);
    return tls->sent;
}

ssize_t wire__tls_send(struct wire *wire, const struct iovec *part, int count)
{
    struct wire_tls *tls = wire->tls;
    ssize_t flushed = write_begin(wire);
    if (flushed < 0) {
        return flushed;
    }
    if (wire_blocked(wire)) {
        return 0;
    }
    ssize_t taken = seal_parts(tls, part, count, ROOM_OUT / 2);
    spill(tls);
    return taken < 0 || tls->sent < 0 ? WIRE_BROKEN : taken;
}

void wire__tls_shut(struct wire *wire)
{
    struct wire_tls *tls = wire->tls;
    operation_begin(wire, false);
    if (tls->state == TLS_OPEN && !tls->quiet) {
        tls->quiet = true;
        SSL_shutdown(tls->ssl);
        spill(tls);
        ERR_clear_error();
    }
}

void wire__tls_reset(struct wire *wire)
{
    wire->tls->quiet = true;
}
