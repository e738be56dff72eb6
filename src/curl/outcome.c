/* SPDX-License-Identifier: MIT */
#include "outcome.h"

#include "destination.h"

#include "engine/apart_internal.h"
#include "http/grpc_text.h"
#include "http/text_internal.h"

#include <errno.h>
#include <time.h>

/* The meaning of libcurl's codes. All other codes are caused by the caller (an invalid URL, a callback that aborted) or
 * by this machine (no memory): they say nothing about the service's health, and are not retried. */
enum trouble { TROUBLE_DNS, TROUBLE_CONNECT, TROUBLE_TLS, TROUBLE_BROKEN, TROUBLE_CUT, TROUBLE_ANSWER, TROUBLE_TIME };

static const struct {
    CURLcode code;
    enum trouble trouble;
} troubles[] = {
    {CURLE_COULDNT_RESOLVE_HOST, TROUBLE_DNS},
    {CURLE_COULDNT_RESOLVE_PROXY, TROUBLE_DNS},
    {CURLE_COULDNT_CONNECT, TROUBLE_CONNECT},
    {CURLE_QUIC_CONNECT_ERROR, TROUBLE_CONNECT},
    {CURLE_SSL_CONNECT_ERROR, TROUBLE_TLS},
    {CURLE_PEER_FAILED_VERIFICATION, TROUBLE_TLS},
    {CURLE_SSL_ISSUER_ERROR, TROUBLE_TLS},
    {CURLE_SSL_PINNEDPUBKEYNOTMATCH, TROUBLE_TLS},
    {CURLE_SSL_INVALIDCERTSTATUS, TROUBLE_TLS},
    {CURLE_SSL_CLIENTCERT, TROUBLE_TLS},
    {CURLE_PROXY, TROUBLE_BROKEN},
    {CURLE_SEND_ERROR, TROUBLE_BROKEN},
    {CURLE_RECV_ERROR, TROUBLE_BROKEN},
    {CURLE_GOT_NOTHING, TROUBLE_BROKEN},
    {CURLE_HTTP2, TROUBLE_BROKEN},
    {CURLE_HTTP2_STREAM, TROUBLE_BROKEN},
    {CURLE_HTTP3, TROUBLE_BROKEN},
    {CURLE_PARTIAL_FILE, TROUBLE_CUT},
    {CURLE_UNSUPPORTED_PROTOCOL, TROUBLE_ANSWER}, /* also "HTTP/0.9 when not allowed"; see below */
    {CURLE_WEIRD_SERVER_REPLY, TROUBLE_ANSWER},
    {CURLE_BAD_CONTENT_ENCODING, TROUBLE_ANSWER},
    {CURLE_OPERATION_TIMEDOUT, TROUBLE_TIME},
};

static long info_long(CURL *easy, CURLINFO info)
{
    long value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK && value > 0 ? value : 0;
}

static curl_off_t info_count(CURL *easy, CURLINFO info)
{
    curl_off_t value = 0;
    return curl_easy_getinfo(easy, info, &value) == CURLE_OK && value > 0 ? value : 0;
}

/* Of the last answer, if redirections led to several; also from its trailers. */
static struct becalm_text header(CURL *easy, const char *name)
{
    struct curl_header *found = NULL;
    if (curl_easy_header(easy, name, 0, CURLH_HEADER | CURLH_TRAILER, -1, &found) != CURLHE_OK) {
        return (struct becalm_text){0};
    }
    return (struct becalm_text){found->value, strlen(found->value)};
}

bool outcome_delivered(CURL *easy)
{
    return info_count(easy, CURLINFO_SIZE_DOWNLOAD_T) > 0;
}

bool outcome_headed(CURL *easy)
{
    curl_off_t length = -1;
    long status = info_long(easy, CURLINFO_RESPONSE_CODE);
    bool followed = status < 200 || (status >= 300 && status < 400) || status == 401 || status == 407;
    if (outcome_delivered(easy)) {
        return true;
    }
    if (followed || curl_easy_nextheader(easy, CURLH_HEADER, -1, NULL) == NULL) {
        return false;
    }
    (void)curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length); /* -1 until the head is complete */
    return length >= 0 || header(easy, "Content-Length").at == NULL || header(easy, "Transfer-Encoding").at != NULL;
}

enum upload outcome_uploads(CURL *easy, curl_off_t *before)
{
    curl_off_t size = -1;
    curl_off_t sent = info_count(easy, CURLINFO_SIZE_UPLOAD_T);
    (void)curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_UPLOAD_T, &size); /* 0: there is no body; -1: not known */
    bool is_http = info_long(easy, CURLINFO_REQUEST_SIZE) > 0 && outcome_connected(easy); /* others have none */
    bool waits = sent == 0 && size != 0 && is_http; /* for "100 Continue", or for the caller */
    bool at_once = *before == 0 && sent == size;
    bool moved = sent != *before && !at_once;
    *before = sent;
    return waits ? UPLOAD_WAITS : moved ? UPLOAD_MOVES : UPLOAD_STANDS;
}

bool outcome_sent_body(CURL *easy)
{
    return info_count(easy, CURLINFO_SIZE_UPLOAD_T) > 0;
}

bool outcome_fresh(CURL *easy)
{
    return info_long(easy, CURLINFO_NUM_CONNECTS) > 0;
}

/* Did the operating system say that no process listens there? ENOENT is a Unix socket's. */
static bool nobody_listens(CURL *easy)
{
    long error = info_long(easy, CURLINFO_OS_ERRNO);
    return error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH || error == ENOENT;
}

bool outcome_connected(CURL *easy)
{
    return info_count(easy, CURLINFO_PRETRANSFER_TIME_T) > 0;
}

bool outcome_in_line(CURL *easy)
{
    return info_count(easy, CURLINFO_NAMELOOKUP_TIME_T) == 0 && !outcome_connected(easy) &&
           info_long(easy, CURLINFO_REQUEST_SIZE) == 0 && info_long(easy, CURLINFO_REDIRECT_COUNT) == 0;
}

becalm_ns outcome_began(CURL *easy)
{
    return (becalm_ns)info_count(easy, CURLINFO_STARTTRANSFER_TIME_T) * BECALM_US;
}

becalm_ns outcome_lasted(CURL *easy)
{
    return (becalm_ns)info_count(easy, CURLINFO_TOTAL_TIME_T) * BECALM_US;
}

static uint32_t status_of(CURL *easy)
{
    return (uint32_t)info_long(easy, CURLINFO_RESPONSE_CODE);
}

static bool is_grpc(CURL *easy)
{
    char *type = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
    return type != NULL && becalm__grpc_is_type((struct becalm_text){type, strlen(type)});
}

/* The answer's header fields may change the meaning of its status. Not the fields of another host that a redirection
 * led to: only the called service itself may say how long to wait, or not to retry. */
static BECALM__COLD void classify(CURL *easy, const struct asked *asked, struct seen *seen)
{
    bool is_stranger = destination_is_strange(easy, asked->handle);
    struct becalm_http_answer answer = {.status = seen->outcome.status, .grpc_status = BECALM_GRPC_NONE};
    if (seen->grpc) {
        answer.grpc_status = becalm__grpc_status_read(header(easy, "grpc-status"));
        answer.pushback = is_stranger ? (struct becalm_text){0} : header(easy, "grpc-retry-pushback-ms");
    }
    if (!is_stranger) {
        answer.retry_after = header(easy, "Retry-After");
        answer.date = header(easy, "Date");
        answer.mark = header(easy, "Becalm-Retry");
        answer.overloaded = header(easy, "x-envoy-overloaded");
        answer.wall = (int64_t)time(NULL);
    }
    becalm_http_classify(asked->retry_on, &answer, &seen->outcome);
    seen->grpc_status = answer.grpc_status;
    seen->retry_after = answer.retry_after;
}

void outcome_of_head(CURL *easy, const struct asked *asked, struct seen *seen)
{
    *seen = (struct seen){.grpc_status = BECALM_GRPC_NONE};
    seen->outcome.status = status_of(easy);
    seen->grpc = is_grpc(easy);
    if (seen->outcome.status >= 400 || seen->grpc) {
        classify(easy, asked, seen);
    }
}

/* Facts that the code alone does not have: whether anything was sent, and how much of an answer arrived. */
static enum becalm_http_failure failure_of(CURL *easy, enum trouble trouble)
{
    /* Also after redirections: then the first request was sent, however the next one ended. */
    bool sent = info_long(easy, CURLINFO_REQUEST_SIZE) > 0 || info_long(easy, CURLINFO_REDIRECT_COUNT) > 0;
    bool answered = status_of(easy) >= 200;
    switch (trouble) {
    case TROUBLE_DNS:
        return sent ? BECALM_HTTP_RESET : BECALM_HTTP_DNS;
    case TROUBLE_CONNECT:
        return sent ? BECALM_HTTP_RESET : BECALM_HTTP_CONNECT;
    case TROUBLE_TLS:
        return sent ? BECALM_HTTP_RESET : BECALM_HTTP_TLS;
    case TROUBLE_BROKEN:
        return !sent ? BECALM_HTTP_RESET_BEFORE_REQUEST : answered ? BECALM_HTTP_CUT : BECALM_HTTP_RESET;
    case TROUBLE_CUT:
        return BECALM_HTTP_CUT;
    case TROUBLE_ANSWER:
        return BECALM_HTTP_BAD_ANSWER;
    case TROUBLE_TIME:
        return sent || outcome_connected(easy) ? BECALM_HTTP_TIMEOUT : BECALM_HTTP_CONNECT;
    }
    BECALM_UNREACHABLE();
}

/* The status of a proxy that refused a tunnel, through which nothing was sent then; 0: it made one, or there was none.
 */
static long tunnel_refusal(CURL *easy)
{
    long said = info_long(easy, CURLINFO_HTTP_CONNECTCODE);
    bool sent_before = info_long(easy, CURLINFO_REDIRECT_COUNT) > 0 || status_of(easy) != 0;
    return said >= 300 && !sent_before ? said : 0;
}

/* An error that the answer's status explains, though libcurl reports another problem with it: it is no part of a file
 * to be resumed, or too long. */
static bool is_by_status(CURL *easy, CURLcode code)
{
    bool may_be = code == CURLE_HTTP_RETURNED_ERROR || code == CURLE_RANGE_ERROR || code == CURLE_FILESIZE_EXCEEDED;
    return may_be && status_of(easy) >= 400;
}

BECALM__COLD void outcome_of_failure(CURL *easy, CURLcode code, const struct asked *asked, struct seen *seen)
{
    const struct becalm_retry_on *retry_on = asked->retry_on;
    if (is_by_status(easy, code)) {
        outcome_of_head(easy, asked, seen);
        return;
    }
    *seen = (struct seen){.grpc_status = BECALM_GRPC_NONE, .outcome = {.kind = BECALM_OUTCOME_CANCELLED}};
    long refusal = tunnel_refusal(easy);
    if (refusal != 0) { /* the host is busy, or refuses this caller, which says nothing about other callers */
        if (refusal >= 500 || refusal == 429) {
            becalm_http_fail(retry_on, BECALM_HTTP_CONNECT, &seen->outcome);
        }
        return;
    }
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++) {
        bool own_fault = code == CURLE_UNSUPPORTED_PROTOCOL && info_long(easy, CURLINFO_REQUEST_SIZE) == 0;
        if (troubles[i].code == code && !own_fault) {
            enum becalm_http_failure failure = failure_of(easy, troubles[i].trouble);
            becalm_http_fail(retry_on, failure, &seen->outcome);
            seen->outcome.no_listener =
                code == CURLE_COULDNT_CONNECT && failure == BECALM_HTTP_CONNECT && nobody_listens(easy);
        }
    }
}
