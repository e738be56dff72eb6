/* SPDX-License-Identifier: MIT */
/* A program that makes calls by its arguments and prints their results, one JSON object per line; the tests beside it
 * drive it against hosts that misbehave.
 *
 *   lab POLICY URL [key=value ...] */
#define _POSIX_C_SOURCE 200809L
#include <becalm/becalm.h>
#include <becalm/curl.h>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SOCKETS_MAX 65536
#define WORDS_MAX   16

/* Of an option that may be given many times. */
struct words {
    const char *at[WORDS_MAX];
    long count;
};

/* Calls whose body has begun. Not in the lab, which threads copy. */
static atomic_long answering;

struct lab {
    struct becalm_client *client;
    const char *url;
    const char *other;     /* a URL for one more call, by a thread of its own */
    const char *interface; /* easy, multi or socket */
    const char *method;
    const char *data; /* POSTFIELDS */
    const char *read; /* a body for the read callback */
    const char *operation;
    const char *file;  /* a body from this file ... */
    long file_from;    /* ... from here on */
    const char *form;  /* a form with one part */
    struct words set;  /* options to be set, in this order: postfields:x, postfields, nobody:0 ... */
    struct words only; /* only these options are recorded: WRITEDATA ... */
    struct curl_slist *header;
    long repeat;
    long threads;
    long at_once;
    long connections; /* the most; 0: as many as there are calls */
    long deadline_ms;
    bool deadline_once; /* of the first call only */
    bool no_place;      /* for errors of the policy */
    bool state;         /* print the memory of the program at its end */
    long cancel_ms;
    long pause_ms;  /* before each call */
    long period_ms; /* call n of a thread, or of a multi, begins n times this time after the first */
    becalm_ns began_at;
    long write_ms; /* before the write callback takes the first bytes of an answer */
    long read_ms;  /* before each byte that the read callback gives, one at a time */
    bool plain;
    bool seek;
    bool key;
    bool fail_on_error;
    bool fresh; /* a handle of its own for each call */
    bool reset; /* the handle, before each call but the first */
    bool quiet;
    bool answer_only; /* the write function and its data are all that is recorded */
    bool half_plain;  /* all that is about the answer is set without us, after one option that is not */
    bool body_plain;  /* and all that is about the request's body */
    bool form_reads;  /* the form's part comes from a callback that can't go back */
    bool seek_fails;
    bool unsized;     /* the length of the body is unknown */
    long lacks;       /* bytes that were said of the body, and never come */
    bool follow;      /* redirections */
    bool password;    /* is set, for servers that ask for one */
    bool pauses;      /* the first time that the write callback is called */
    bool pause_alone; /* and goes on with libcurl's own function */
    bool meddles;     /* after going on it calls functions that callbacks must not call */
    struct becalm_curl_multi *multi;
    long abort_ms; /* the progress function gives up after this time; it also resumes paused transfers */
    bool refuses;  /* the line that ends the answer's head */
    bool late;     /* sets the answer's data and the request's headers again, once there is a head */
    bool cookies;
    const char *cookie; /* a line of headers: one that it has from the beginning */
    const char *jar;    /* the file that they are written to */
    bool again;         /* after the calls one without us, with the same handle */
    const char *proxy;  /* for tunnels */
    long resume;        /* from this byte on */
    long size_max;
    long timeout_ms;
    long hasty_from; /* the first of the calls in a row that have it ... */
    long hasty;      /* ... and how many do; 0: all */
    long connect_ms; /* CONNECTTIMEOUT_MS; 0: the policy's */
    long max_connects;
    long descriptors; /* the most in the program */
    bool forks;       /* and both processes make the calls once more */
    bool in_turn;     /* each thread begins when the one before it has the first bytes of its answer */
};

/* One handle and the arguments of its callbacks. */
struct call {
    atomic_bool over;    /* for cancelling it */
    const char *service; /* the service of the call; "": none; NULL: not asked */
    CURL *easy;
    struct lab *lab;
    char body[256];
    size_t length;
    size_t total;
    unsigned heads; /* status lines */
    unsigned lines;
    unsigned lines_before; /* the body */
    size_t at;             /* in lab->read, or in lab->form */
    unsigned seeks;
    bool paused;
    bool unpaused;
    bool unpausing;
    becalm_ns abort_at;
    struct call *elsewhere;       /* where the answer goes, if it is told so when its head has come */
    struct curl_slist *elsewhose; /* headers that are told then, too */
    FILE *file;
    curl_mime *mime;
    char error[CURL_ERROR_SIZE];
};

static pthread_mutex_t printing = PTHREAD_MUTEX_INITIALIZER;

static void meddle(struct call *call)
{
    struct becalm_curl_multi *multi = call->lab->multi;
    CURL *other = curl_easy_init();
    int running = 0;
    int added = (int)becalm_curl_multi_add_handle(multi, other);
    int removed = (int)becalm_curl_multi_remove_handle(multi, call->easy);
    int performed = (int)becalm_curl_multi_perform(multi, &running);
    int acted = (int)becalm_curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    (void)printf("{\"meddled\": [%d, %d, %d, %d]}\n", added, removed, performed, acted);
    curl_easy_cleanup(other);
}

static void pause_ms(long ms)
{
    (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static size_t on_write(char *at, size_t size, size_t count, void *data)
{
    struct call *call = data;
    size_t room = sizeof call->body - 1 - call->length;
    if (call->lab->pauses && !call->paused) {
        call->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (call->unpausing && call->lab->meddles) {
        meddle(call);
    }
    if (call->total == 0) {
        atomic_fetch_add(&answering, 1);
        pause_ms(call->lab->write_ms);
    }
    call->lines_before = call->total == 0 ? call->lines : call->lines_before;
    size_t taken = size * count < room ? size * count : room;
    memcpy(call->body + call->length, at, taken);
    call->length += taken;
    call->total += size * count;
    return size * count;
}

/* As many programs do it: the file is opened when the headers have arrived. */
static void set_in_callback(struct call *call)
{
    struct becalm_client *client = call->lab->client;
    call->elsewhere = calloc(1, sizeof *call->elsewhere);
    call->elsewhere->lab = call->lab;
    call->elsewhose = curl_slist_append(NULL, "X-Mine: late");
    (void)becalm_curl_setopt(call->easy, client, CURLOPT_WRITEDATA, call->elsewhere);
    (void)becalm_curl_setopt(call->easy, client, CURLOPT_HTTPHEADER, call->elsewhose);
    curl_slist_free_all(call->lab->header);
    call->lab->header = NULL;
}

static size_t on_header(char *at, size_t size, size_t count, void *data)
{
    struct call *call = data;
    if (call->lab->late && call->elsewhere == NULL) {
        set_in_callback(call);
    }
    call->heads += size * count > 5 && strncmp(at, "HTTP/", 5) == 0;
    call->lines++;
    return call->lab->refuses && at[0] == '\r' ? 0 : size * count;
}

static size_t on_read(char *at, size_t size, size_t count, void *data)
{
    struct call *call = data;
    size_t left = strlen(call->lab->read) - call->at;
    size_t given = left < size * count ? left : size * count;
    if (call->lab->read_ms > 0 && given > 0) {
        pause_ms(call->lab->read_ms);
        given = 1;
    }
    memcpy(at, call->lab->read + call->at, given);
    call->at += given;
    return given;
}

static size_t on_form_read(char *at, size_t size, size_t count, void *data)
{
    struct call *call = data;
    size_t left = strlen(call->lab->form) - call->at;
    size_t given = left < size * count ? left : size * count;
    memcpy(at, call->lab->form + call->at, given);
    call->at += given;
    return given;
}

static int on_seek(void *data, curl_off_t offset, int origin)
{
    struct call *call = data;
    call->at = (size_t)offset;
    call->seeks++;
    return origin == SEEK_SET && !call->lab->seek_fails ? CURL_SEEKFUNC_OK : CURL_SEEKFUNC_FAIL;
}

static int on_progress(void *data, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    struct call *call = data;
    (void)total, (void)now, (void)up_total, (void)up_now;
    if (call->paused && !call->unpaused) {
        call->unpaused = true;
        (void)curl_easy_pause(call->easy, CURLPAUSE_CONT);
    }
    return becalm_run_now() >= call->abort_at;
}

static bool is_recorded(const struct lab *lab, CURLoption option)
{
    bool named = lab->only.count == 0;
    for (long i = 0; i < lab->only.count; i++) {
        named = named || curl_easy_option_by_name(lab->only.at[i])->id == option;
    }
    return named && !lab->plain;
}

#define SET_RESULT(option, value)                                                          \
    (is_recorded(lab, option) ? becalm_curl_setopt(call->easy, lab->client, option, value) \
                              : curl_easy_setopt(call->easy, option, value))
#define SET(option, value) ((void)SET_RESULT(option, value))

static bool option_is(const char *argument, const char *key, char sign, const char **value)
{
    size_t length = strlen(key);
    *value = argument + length + 1;
    return strncmp(argument, key, length) == 0 && argument[length] == sign;
}

/* One option by name and value, for tests of sequences of options. */
static void set_one(struct call *call, struct lab *lab, const char *set)
{
    const char *value = NULL;
    bool any = strchr(set, ':') != NULL;
    const struct {
        const char *name;
        CURLoption option;
        bool text;
    } names[] = {
        {"postfields", CURLOPT_POSTFIELDS, true},
        {"copypostfields", CURLOPT_COPYPOSTFIELDS, true},
        {"mimepost", CURLOPT_MIMEPOST, true},
        {"nobody", CURLOPT_NOBODY, false},
        {"httpget", CURLOPT_HTTPGET, false},
        {"upload", CURLOPT_UPLOAD, false},
        {"post", CURLOPT_POST, false},
        {"path_as_is", CURLOPT_PATH_AS_IS, false},
        {"connect_only", CURLOPT_CONNECT_ONLY, false},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool named = any ? option_is(set, names[i].name, ':', &value) : strcmp(set, names[i].name) == 0;
        if (named && names[i].text) {
            SET(names[i].option, any ? value : NULL);
        } else if (named && SET_RESULT(names[i].option, any ? strtol(value, NULL, 10) : 0L) != CURLE_OK) {
            (void)printf("{\"refused\": \"%s\"}\n", set);
        }
    }
}

static void set_answer(struct call *call, struct lab *lab)
{
    SET(CURLOPT_WRITEFUNCTION, on_write);
    SET(CURLOPT_WRITEDATA, call);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, call);
    SET(CURLOPT_HTTPHEADER, lab->header);
    SET(CURLOPT_CONNECTTIMEOUT_MS, lab->connect_ms);
}

static void set_file(struct call *call, struct lab *lab)
{
    call->file = fopen(lab->file, "rb");
    (void)fseek(call->file, 0, SEEK_END);
    long size = ftell(call->file) - lab->file_from;
    (void)fseek(call->file, lab->file_from, SEEK_SET);
    SET(CURLOPT_UPLOAD, 1L);
    SET(CURLOPT_READFUNCTION, NULL);
    SET(CURLOPT_READDATA, call->file);
    SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
}

static void set_form(struct call *call, struct lab *lab)
{
    call->mime = curl_mime_init(call->easy);
    curl_mimepart *part = curl_mime_addpart(call->mime);
    (void)curl_mime_name(part, "f");
    if (lab->form_reads) {
        (void)curl_mime_data_cb(part, (curl_off_t)strlen(lab->form), on_form_read, NULL, NULL, call);
    } else {
        (void)curl_mime_data(part, lab->form, CURL_ZERO_TERMINATED);
    }
    SET(CURLOPT_MIMEPOST, call->mime);
}

static void set_progress(struct call *call, struct lab *lab)
{
    call->abort_at = becalm_ns_after(becalm_run_now(), (becalm_ns)lab->abort_ms * BECALM_MS);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, call);
}

/* Options that are never recorded. */
static void set_others(struct call *call, const struct lab *lab)
{
    (void)curl_easy_setopt(call->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
    (void)curl_easy_setopt(call->easy, CURLOPT_FOLLOWLOCATION, (long)lab->follow);
    (void)curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, lab->timeout_ms);
    (void)curl_easy_setopt(call->easy, CURLOPT_FAILONERROR, (long)lab->fail_on_error);
    (void)curl_easy_setopt(call->easy, CURLOPT_PROXY, lab->proxy);
    (void)curl_easy_setopt(call->easy, CURLOPT_HTTPPROXYTUNNEL, (long)(lab->proxy != NULL));
    (void)curl_easy_setopt(call->easy, CURLOPT_RESUME_FROM, lab->resume);
    (void)curl_easy_setopt(call->easy, CURLOPT_MAXFILESIZE, lab->size_max);
    if (lab->cookies) {
        (void)curl_easy_setopt(call->easy, CURLOPT_COOKIEFILE, "");
        (void)curl_easy_setopt(call->easy, CURLOPT_COOKIELIST, lab->cookie);
        (void)curl_easy_setopt(call->easy, CURLOPT_COOKIEJAR, lab->jar);
        (void)curl_easy_setopt(call->easy, CURLOPT_COOKIELIST, "FLUSH");
    }
    if (lab->password) {
        (void)curl_easy_setopt(call->easy, CURLOPT_USERPWD, "me:secret");
        (void)curl_easy_setopt(call->easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_ANY);
    }
}

static void set_body(struct call *call, struct lab *lab)
{
    if (lab->file != NULL) {
        set_file(call, lab);
    }
    if (lab->form != NULL) {
        set_form(call, lab);
    }
    if (lab->data != NULL) {
        SET(CURLOPT_POSTFIELDS, lab->data);
    }
    if (lab->read != NULL) {
        SET(CURLOPT_UPLOAD, 1L);
        SET(CURLOPT_READFUNCTION, on_read);
        SET(CURLOPT_READDATA, call);
        SET(CURLOPT_INFILESIZE_LARGE, lab->unsized ? (curl_off_t)-1 : (curl_off_t)strlen(lab->read) + lab->lacks);
    }
    if (lab->read != NULL && lab->seek) {
        SET(CURLOPT_SEEKFUNCTION, on_seek);
        SET(CURLOPT_SEEKDATA, call);
    }
}

/* A part of the options may be set directly with libcurl. */
static struct lab half_of(const struct lab *lab, bool plain)
{
    struct lab half = *lab;
    half.plain = lab->plain || plain;
    return half;
}

static void call_set(struct call *call, struct lab *lab)
{
    struct lab answer = half_of(lab, lab->half_plain || lab->answer_only);
    struct lab body = half_of(lab, lab->body_plain);
    SET(CURLOPT_URL, lab->url);
    SET(CURLOPT_ERRORBUFFER, call->error);
    set_answer(call, &answer);
    if (lab->answer_only) {
        SET(CURLOPT_WRITEFUNCTION, on_write);
        SET(CURLOPT_WRITEDATA, call);
    }
    set_others(call, lab);
    if (lab->max_connects > 0) {
        SET(CURLOPT_MAXCONNECTS, lab->max_connects);
    }
    if (lab->abort_ms > 0) {
        set_progress(call, lab);
    }
    set_body(call, &body);
    if (lab->method != NULL) {
        SET(CURLOPT_CUSTOMREQUEST, lab->method);
    }
    for (long i = 0; i < lab->set.count; i++) {
        set_one(call, lab, lab->set.at[i]);
    }
    if (lab->key && becalm_curl_idempotency_key(call->easy, lab->client) != CURLE_OK) {
        (void)printf("{\"no_key\": true}\n");
    }
    if (lab->operation != NULL) {
        (void)becalm_curl_operation(call->easy, lab->client, lab->operation);
    }
}

static void call_make(struct call *call, struct lab *lab)
{
    *call = (struct call){.easy = curl_easy_init(), .lab = lab};
    call_set(call, lab);
}

static void print_text(const char *name, const char *text)
{
    (void)printf("\"%s\": \"", name);
    for (; *text != '\0'; text++) {
        (void)printf(*text < ' ' || *text == '"' || *text == '\\' ? "\\u%04x" : "%c", (unsigned char)*text);
    }
    (void)printf("\", ");
}

/* Bytes that went to another sink belong to its answer, too. */
static void elsewhere_take(struct call *call)
{
    if (call->elsewhere != NULL) {
        memcpy(call->body, call->elsewhere->body, sizeof call->body);
        call->length = call->elsewhere->length;
        call->total = call->elsewhere->total;
        call->elsewhere->length = 0;
    }
}

static void print_cookies(const struct curl_slist *cookie)
{
    (void)printf("\"cookies\": [");
    for (const char *comma = ""; cookie != NULL; cookie = cookie->next, comma = ", ") {
        (void)printf("%s\"%s\"", comma, strrchr(cookie->data, '\t') + 1);
    }
    (void)printf("], ");
}

/* A cookie in its file has six. */
static int tabs_in(const char *path)
{
    FILE *file = path == NULL ? NULL : fopen(path, "r");
    int tabs = 0;
    for (int c = 0; file != NULL && c != EOF; c = fgetc(file)) {
        tabs += c == '\t';
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return tabs;
}

static void report(struct call *call, CURLcode code, const struct becalm_record *record, CURL *answered)
{
    long status = 0;
    struct curl_slist *cookies = NULL;
    if (call->lab->quiet) {
        return;
    }
    elsewhere_take(call);
    (void)curl_easy_getinfo(answered, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(call->easy, CURLINFO_COOKIELIST, &cookies);
    call->body[call->length] = '\0';
    (void)pthread_mutex_lock(&printing);
    (void)printf("{");
    print_text("body", call->length < 200 ? call->body : "long");
    print_text("reason", becalm_reason_word(record->reason));
    if (call->service != NULL) {
        print_text("service", call->service);
    }
    print_text("error", call->error);
    print_cookies(cookies);
    (void)printf("\"jar\": %d, ", tabs_in(call->lab->jar));
    (void)printf("\"code\": %d, \"status\": %ld, \"bytes\": %zu, \"heads\": %u, \"lines\": %u, \"lines_before\": %u, "
                 "\"seeks\": %u, "
                 "\"copied\": %s, \"at_ms\": %llu, \"took_ms\": %llu, \"attempts\": [",
                 (int)code, status, call->total, call->heads, call->lines, call->lines_before, call->seeks,
                 answered == call->easy ? "false" : "true",
                 (unsigned long long)((record->began_at - call->lab->began_at) / BECALM_MS),
                 (unsigned long long)((record->ended_at - record->began_at) / BECALM_MS));
    for (uint32_t i = 0; i < record->attempts && i < BECALM_RECORD_MAX; i++) {
        (void)printf("%s\"%s\"", i == 0 ? "" : ", ",
                     record->attempt[i].open ? "open" : becalm_outcome_word(record->attempt[i].outcome));
    }
    (void)printf("]}\n");
    (void)fflush(stdout);
    (void)pthread_mutex_unlock(&printing);
    curl_slist_free_all(cookies);
}

static void call_forget(struct call *call)
{
    call->length = 0;
    call->total = 0;
    call->heads = 0;
    call->lines = 0;
    call->at = 0;
    (void)snprintf(call->error, sizeof call->error, "stale");
}

/* libcurl alone, with the handle as we have left it. */
static void call_plainly(struct call *call)
{
    struct becalm_record record = {.reason = BECALM_WHY_NONE};
    call_forget(call);
    CURLcode code = curl_easy_perform(call->easy);
    report(call, code, &record, call->easy);
}

static void call_free(struct call *call)
{
    if (call->easy == NULL) {
        return;
    }
    if (call->lab->plain && call->lab->operation == NULL && call->lab->deadline_ms == 0) {
        curl_easy_cleanup(call->easy); /* the client was told nothing of it */
    } else {
        becalm_curl_cleanup(call->easy, call->lab->client);
    }
    curl_mime_free(call->mime);
    free(call->elsewhere);
    curl_slist_free_all(call->elsewhose);
    if (call->file != NULL) {
        (void)fclose(call->file);
    }
}

static void *cancel_later(void *data)
{
    struct call *call = data;
    pause_ms(call->lab->cancel_ms);
    while (!becalm_curl_cancel(call->easy, call->lab->client) && !atomic_load(&call->over)) {
        pause_ms(10); /* it has not begun yet */
    }
    return NULL;
}

static void set_deadline(struct call *call)
{
    becalm_ns left = (becalm_ns)call->lab->deadline_ms * BECALM_MS;
    if (left > 0) {
        (void)becalm_curl_deadline(call->easy, call->lab->client, becalm_ns_after(becalm_run_now(), left));
    }
}

/* Until call n has to begin. */
static long left_ms(const struct lab *lab, long n)
{
    becalm_ns at = lab->began_at + (becalm_ns)(n * lab->period_ms) * BECALM_MS;
    return (long)(becalm_ns_left(becalm_run_now(), at) / BECALM_MS);
}

static void *run_easy(void *data)
{
    struct lab *lab = data;
    struct call *calls = calloc((size_t)lab->repeat, sizeof *calls);
    struct call *call = calls;
    struct becalm_record record;
    pthread_t canceller;
    for (long i = 0; i < lab->repeat; i++) {
        if (i == 0 || lab->fresh) {
            call = &calls[i];
            call_make(call, lab);
        } else if (lab->reset) {
            becalm_curl_reset(call->easy, lab->client);
            call_set(call, lab);
        }
        call_forget(call);
        pause_ms(lab->pause_ms);
        pause_ms(left_ms(lab, i));
        if (lab->hasty > 0) {
            bool is_hasty = i >= lab->hasty_from && i < lab->hasty_from + lab->hasty;
            (void)curl_easy_setopt(call->easy, CURLOPT_TIMEOUT_MS, is_hasty ? lab->timeout_ms : 0L);
        }
        if (i == 0 || !lab->deadline_once) {
            set_deadline(call);
        }
        atomic_store(&call->over, false);
        if (lab->cancel_ms > 0) {
            (void)pthread_create(&canceller, NULL, cancel_later, call);
        }
        CURLcode code = becalm_curl_perform(call->easy, lab->client);
        atomic_store(&call->over, true);
        if (lab->cancel_ms > 0) {
            (void)pthread_join(canceller, NULL);
        }
        const char *service = becalm_curl_service(call->easy, lab->client);
        call->service = service == NULL ? "" : service;
        if (becalm_curl_record(call->easy, lab->client, &record)) {
            report(call, code, &record, call->easy);
        }
        if (lab->again) {
            call_plainly(call);
        }
        if (!lab->plain && (i == lab->repeat - 1 || lab->fresh)) {
            call_free(call);
        }
    }
    for (long i = 0; i < lab->repeat && lab->plain; i++) { /* all at the end, so that no two have the same address */
        call_free(&calls[i]);
    }
    free(calls);
    return NULL;
}

/* ---- many at once ---- */

struct loop {
    struct becalm_curl_multi *multi;
    CURLM *curl;
    struct pollfd *poll;
    nfds_t count;
    long timer_ms;
};

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *data, void *own)
{
    struct loop *loop = data;
    (void)easy;
    (void)own;
    for (nfds_t i = 0; i <= loop->count && i < SOCKETS_MAX; i++) {
        if (i < loop->count && loop->poll[i].fd != socket) {
            continue;
        }
        if (what == CURL_POLL_REMOVE) {
            if (i < loop->count) {
                loop->poll[i] = loop->poll[--loop->count];
            }
            return 0;
        }
        loop->count += i == loop->count;
        loop->poll[i].fd = socket;
        loop->poll[i].revents = 0;
        loop->poll[i].events =
            (short)(((what & CURL_POLL_IN) != 0 ? POLLIN : 0) | ((what & CURL_POLL_OUT) != 0 ? POLLOUT : 0));
        return 0;
    }
    return 0;
}

static int on_timer(CURLM *curl, long ms, void *data)
{
    struct loop *loop = data;
    (void)curl;
    loop->timer_ms = ms;
    return 0;
}

/* Paused callers take the available bytes. */
static void unpause(const struct lab *lab, struct call *calls)
{
    for (long i = 0; i < lab->at_once && lab->pauses; i++) {
        if (calls[i].paused && !calls[i].unpaused) {
            calls[i].unpaused = true;
            calls[i].unpausing = true;
            (void)(lab->pause_alone ? curl_easy_pause(calls[i].easy, CURLPAUSE_CONT)
                                    : becalm_curl_pause(calls[i].easy, lab->client, CURLPAUSE_CONT));
            calls[i].unpausing = false;
        }
    }
}

static void messages_read(struct loop *loop)
{
    CURLMsg *message;
    int left;
    while ((message = becalm_curl_multi_info_read(loop->multi, &left)) != NULL) {
        struct call *call = NULL;
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&call);
        report(call, code, becalm_curl_multi_record(loop->multi, easy), becalm_curl_multi_answered(loop->multi, easy));
        (void)becalm_curl_multi_remove_handle(loop->multi, easy);
        call_free(call);
    }
}

static void call_add(struct call *call, struct lab *lab)
{
    call_make(call, lab);
    set_deadline(call);
    (void)becalm_curl_multi_add_handle(lab->multi, call->easy);
}

/* All at once, or each in its time. */
static void loop_sockets(struct loop *loop, struct lab *lab, struct call *calls)
{
    long added = lab->period_ms == 0 ? lab->at_once : 0;
    int running = (int)added;
    while (added < lab->at_once || running > 0) {
        for (; added < lab->at_once && left_ms(lab, added) == 0; added++, running++) {
            call_add(&calls[added], lab);
        }
        int ms = loop->timer_ms < 0 ? 10000 : (int)loop->timer_ms;
        ms = added < lab->at_once && left_ms(lab, added) < ms ? (int)left_ms(lab, added) : ms;
        int ready = poll(loop->poll, loop->count, ms);
        if (ready == 0) {
            loop->timer_ms = -1;
            (void)becalm_curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        }
        for (nfds_t i = 0; ready > 0 && i < loop->count; i++) {
            short events = loop->poll[i].revents;
            loop->poll[i].revents = 0;
            if (events != 0) {
                int what = ((events & (POLLIN | POLLHUP)) != 0 ? CURL_CSELECT_IN : 0) |
                           ((events & POLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                           ((events & POLLERR) != 0 ? CURL_CSELECT_ERR : 0);
                (void)becalm_curl_multi_socket_action(loop->multi, loop->poll[i].fd, what, &running);
            }
        }
        messages_read(loop);
    }
}

/* All at once, or each in its time. */
static void loop_perform(struct loop *loop, struct lab *lab, struct call *calls)
{
    long added = lab->period_ms == 0 ? lab->at_once : 0;
    int running = (int)added;
    while (added < lab->at_once || running > 0) {
        for (; added < lab->at_once && left_ms(lab, added) == 0; added++) {
            call_add(&calls[added], lab);
        }
        (void)becalm_curl_multi_perform(loop->multi, &running);
        unpause(lab, calls);
        messages_read(loop);
        long ms = added < lab->at_once ? left_ms(lab, added) : 10000;
        if (running > 0 || added < lab->at_once) {
            (void)becalm_curl_multi_poll(loop->multi, NULL, 0, (int)ms, NULL);
        }
    }
}

static void *run_multi(void *data)
{
    struct lab own = *(struct lab *)data; /* other threads have multis of their own */
    struct lab *lab = &own;
    struct loop loop = {.curl = curl_multi_init(), .timer_ms = -1};
    bool sockets = strcmp(lab->interface, "socket") == 0;
    struct call *calls = calloc((size_t)lab->at_once, sizeof *calls);
    loop.multi = becalm_curl_multi_new(loop.curl, lab->client);
    lab->multi = loop.multi;
    if (sockets) {
        loop.poll = calloc(SOCKETS_MAX, sizeof *loop.poll);
        (void)becalm_curl_multi_setopt(loop.multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        (void)becalm_curl_multi_setopt(loop.multi, CURLMOPT_SOCKETDATA, &loop);
        (void)becalm_curl_multi_setopt(loop.multi, CURLMOPT_TIMERDATA, &loop);
        (void)becalm_curl_multi_setopt(loop.multi, CURLMOPT_TIMERFUNCTION, on_timer);
    }
    (void)becalm_curl_multi_setopt(loop.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, lab->connections);
    for (long i = 0; i < lab->at_once && lab->period_ms == 0; i++) {
        call_add(&calls[i], lab);
    }
    if (sockets) {
        loop_sockets(&loop, lab, calls);
    } else {
        loop_perform(&loop, lab, calls);
    }
    becalm_curl_multi_free(loop.multi);
    (void)curl_multi_cleanup(loop.curl);
    free(calls);
    free(loop.poll);
    return NULL;
}

/* ---- arguments ---- */

static void on_retry(const struct becalm_curl_retry *r, void *data)
{
    (void)data;
    (void)pthread_mutex_lock(&printing);
    (void)printf("{\"retry\": %u, \"of\": %u, ", r->retry, r->of);
    print_text("operation", r->operation == NULL ? "" : r->operation);
    print_text("service", r->service);
    print_text("endpoint", r->endpoint == NULL ? "" : r->endpoint);
    print_text("outcome", becalm_outcome_word(r->outcome));
    print_text("reason", becalm_reason_word(r->reason));
    (void)printf("\"method\": \"%.*s\", \"retry_after\": \"%.*s\", \"request_id\": \"%.*s\", \"status\": %u, "
                 "\"code\": %d, \"delay_us\": %llu, \"jittered_us\": %llu, \"slept_us\": %llu}\n",
                 (int)r->method.length, r->method.at, (int)r->retry_after.length, r->retry_after.at,
                 (int)r->request_id.length, r->request_id.at, r->status, (int)r->code,
                 (unsigned long long)(r->wait.delay / BECALM_US), (unsigned long long)(r->wait.jittered / BECALM_US),
                 (unsigned long long)(r->slept / BECALM_US));
    (void)pthread_mutex_unlock(&printing);
}

/* With the calls that are in progress as the metrics have it. */
static void on_breaker(const char *service, enum becalm_breaker_state from, enum becalm_breaker_state to, void *data)
{
    const struct lab *lab = data;
    char *metrics = becalm_client_metrics(lab->client);
    const char *active = metrics == NULL ? NULL : strstr(metrics, "\nbecalm_active_requests{");
    (void)pthread_mutex_lock(&printing);
    (void)printf("{\"breaker\": [\"%s\", \"%s\", \"%s\"], \"active\": %ld}\n", service, becalm_breaker_word(from),
                 becalm_breaker_word(to), active == NULL ? -1 : strtol(strchr(active, '}') + 1, NULL, 10));
    (void)pthread_mutex_unlock(&printing);
    free(metrics);
}

/* Each reads the value of an option to its place in the lab. False: it can't be that. */

static bool text_read(void *place, const char *value)
{
    *(const char **)place = value;
    return true;
}

static bool number_read(void *place, const char *value)
{
    *(long *)place = strtol(value, NULL, 10);
    return true;
}

static bool flag_read(void *place, const char *value)
{
    *(bool *)place = strcmp(value, "1") == 0;
    return true;
}

static bool header_read(void *place, const char *value)
{
    struct curl_slist **headers = place;
    struct curl_slist *longer = curl_slist_append(*headers, value);
    *headers = longer == NULL ? *headers : longer;
    return longer != NULL;
}

static bool words_read(void *place, const char *value)
{
    struct words *words = place;
    if (words->count == WORDS_MAX) {
        return false;
    }
    words->at[words->count++] = value;
    return true;
}

static bool names_read(void *place, const char *value)
{
    return curl_easy_option_by_name(value) != NULL && words_read(place, value);
}

#define OPTION(kind, name) #name, kind##_read, offsetof(struct lab, name)

static const struct {
    const char *name;
    bool (*read)(void *place, const char *value);
    size_t place;
} option_table[] = {
    {OPTION(text, other)},          {OPTION(text, interface)},     {OPTION(text, method)},
    {OPTION(text, data)},           {OPTION(text, read)},          {OPTION(text, operation)},
    {OPTION(text, file)},           {OPTION(text, form)},          {OPTION(text, proxy)},
    {OPTION(text, cookie)},         {OPTION(text, jar)},           {OPTION(number, resume)},
    {OPTION(number, size_max)},     {OPTION(number, file_from)},   {OPTION(number, timeout_ms)},
    {OPTION(number, hasty_from)},   {OPTION(number, hasty)},       {OPTION(number, connect_ms)},
    {OPTION(number, max_connects)}, {OPTION(number, abort_ms)},    {OPTION(number, repeat)},
    {OPTION(number, threads)},      {OPTION(number, at_once)},     {OPTION(number, connections)},
    {OPTION(number, deadline_ms)},  {OPTION(number, cancel_ms)},   {OPTION(number, pause_ms)},
    {OPTION(number, period_ms)},    {OPTION(number, descriptors)}, {OPTION(number, read_ms)},
    {OPTION(number, lacks)},        {OPTION(flag, answer_only)},   {OPTION(flag, half_plain)},
    {OPTION(flag, body_plain)},     {OPTION(flag, form_reads)},    {OPTION(flag, unsized)},
    {OPTION(flag, seek_fails)},     {OPTION(flag, follow)},        {OPTION(flag, password)},
    {OPTION(flag, pauses)},         {OPTION(flag, pause_alone)},   {OPTION(flag, meddles)},
    {OPTION(flag, late)},           {OPTION(flag, cookies)},       {OPTION(flag, again)},
    {OPTION(flag, plain)},          {OPTION(flag, seek)},          {OPTION(flag, key)},
    {OPTION(flag, fail_on_error)},  {OPTION(flag, fresh)},         {OPTION(flag, reset)},
    {OPTION(flag, quiet)},          {OPTION(flag, deadline_once)}, {OPTION(flag, no_place)},
    {OPTION(flag, state)},          {OPTION(header, header)},      {OPTION(words, set)},
    {OPTION(names, only)},          {OPTION(flag, refuses)},       {OPTION(number, write_ms)},
    {OPTION(flag, in_turn)},        {OPTION(flag, forks)},
};

static bool option_read(struct lab *lab, const char *argument)
{
    const char *value;
    for (size_t i = 0; i < sizeof option_table / sizeof option_table[0]; i++) {
        if (option_is(argument, option_table[i].name, '=', &value)) {
            return option_table[i].read((char *)lab + option_table[i].place, value);
        }
    }
    return false;
}

/* How much memory the program has had at most, and how many descriptors it has now. */
static void print_state(void)
{
    char line[256];
    long most = 0;
    long open = 0;
    FILE *status = fopen("/proc/self/status", "r"); /* getrusage() also counts the memory of the parent before exec */
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        most = strncmp(line, "VmHWM:", 6) == 0 ? strtol(line + 6, NULL, 10) : most;
    }
    (void)fclose(status);
    for (int descriptor = 0; descriptor < SOCKETS_MAX; descriptor++) {
        open += fcntl(descriptor, F_GETFD) >= 0;
    }
    (void)printf("{\"memory_kb\": %ld, \"descriptors\": %ld}\n", most, open);
}

static void run(struct lab *lab)
{
    pthread_t threads[64];
    pthread_t other;
    struct lab elsewhere = *lab;
    bool is_easy = strcmp(lab->interface, "easy") == 0;
    elsewhere.began_at = lab->began_at = becalm_run_now();
    if (lab->other != NULL) {
        elsewhere.url = lab->other;
        elsewhere.repeat = 1;
        (void)pthread_create(&other, NULL, run_easy, &elsewhere);
    }
    for (long i = 0; i < lab->threads; i++) {
        for (int look = 0; lab->in_turn && atomic_load(&answering) < i && look < 500; look++) {
            pause_ms(10);
        }
        pause_ms(lab->in_turn ? 100 : 0); /* libcurl returns from the callback, too */
        (void)pthread_create(&threads[i], NULL, is_easy ? run_easy : run_multi, lab);
    }
    for (long i = 0; i < lab->threads; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    if (lab->other != NULL) {
        (void)pthread_join(other, NULL);
    }
}

/* In a child beside this one. Its metrics of the store become one line. */
static void run_twice(struct lab *lab)
{
    (void)fflush(stdout);
    pid_t child = fork();
    run(lab);
    if (child != 0) {
        (void)waitpid(child, NULL, 0);
        return;
    }
    char *metrics = becalm_client_metrics(lab->client);
    const char *connects = strstr(metrics, "\nbecalm_redis_connects_total{");
    const char *told = strstr(metrics, "\nbecalm_shared_told_total{");
    (void)printf("{\"child_connects\": %ld, \"child_told\": %ld, \"child_lost\": %d}\n",
                 connects == NULL ? -1 : strtol(strchr(connects, '}') + 1, NULL, 10),
                 told == NULL ? -1 : strtol(strchr(told, '}') + 1, NULL, 10),
                 strstr(metrics, "\nbecalm_redis_errors_total{") != NULL);
    free(metrics);
    becalm_client_free(lab->client);
    (void)fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv)
{
    static struct becalm_diags diags;
    struct lab lab = {.interface = "easy", .repeat = 1, .threads = 1, .at_once = 1};
    struct becalm_client_options options = {.on_retry = on_retry, .on_breaker = on_breaker, .data = &lab};
    for (int i = 3; i < argc; i++) {
        if (!option_read(&lab, argv[i])) {
            (void)fprintf(stderr, "lab: what is %s?\n", argv[i]);
            return 2;
        }
    }
    if (argc < 3 || lab.threads > 64) {
        return 2;
    }
    if (lab.descriptors > 0) {
        rlim_t most = (rlim_t)lab.descriptors;
        (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){.rlim_cur = most, .rlim_max = most});
    }
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    lab.url = argv[2];
    lab.client = becalm_client_load(argv[1], &options, lab.no_place ? NULL : &diags);
    if (lab.client == NULL) {
        (void)fprintf(stderr, "lab: %s\n", diags.count > 0 ? diags.diag[0].message : "no memory");
        return 1;
    }
    run(&lab);
    if (lab.forks) {
        run_twice(&lab);
    }
    if (lab.state) {
        print_state();
    }
    char *metrics = becalm_client_metrics(lab.client);
    if (metrics != NULL) {
        (void)printf("%s", metrics);
    }
    free(metrics);
    becalm_client_free(lab.client);
    curl_slist_free_all(lab.header);
    curl_global_cleanup();
    return 0;
}
