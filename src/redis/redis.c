/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "redis.h"

#include "container.h"
#include "unfilled.h"
#include "wire/wire_tls.h"

#include <becalm/backoff.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_SIZE  4096u
#define HEAD_MOST  24u  /* bytes: a sign, 20 digits, the end of a line */
#define WORD_SHORT 128u /* bytes: a word of at most this length is added together with its head */
#define MOVES_MAX  3u   /* redirections that are followed without a wait; one more counts as a failure */

/* The commands that greet a server. Their replies come in this order. */
enum greeting { GREET_LOGIN, GREET_DATABASE, GREET_NAME, GREET_ROLE, GREET_RUN, GREET_PING };
#define GREETINGS 6u

/* The connection. Its memory lives until events for it can't come any more. */
struct link {
    struct wire wire; /* first */
    struct redis *redis;
};

struct redis {
    struct loop *loop;
    struct redis_options options;
    struct becalm_backoff_policy backoff;
    enum redis_state state;
    struct link *link;
    struct wire_host *tls_host; /* of this connection */
    struct wire_room room;
    struct tls_counts tls_counts;
    struct reply_reader reader;
    char host[REDIS_HOST_MAX];      /* that is connected to */
    char elsewhere[REDIS_HOST_MAX]; /* where a Sentinel or a node of a cluster has sent us; "": nowhere */
    bool asks;                      /* that node serves us only if each command is announced */
    uint32_t moves;                 /* since an answer was good */
    uint32_t turn;                  /* of the place's hosts */
    enum greeting greeting[GREETINGS];
    uint32_t greeting_count;
    uint32_t greeted;
    char run[REDIS_RUN_MAX];
    struct redis_command *first;
    struct redis_command **last;
    struct redis_command *along; /* is written with the next one; NULL: none */
    struct timer limit;          /* the server is silent for too long */
    struct timer again;
    uint32_t tries; /* since it was last good */
    bool noted;     /* that it is away */
    bool was_good;
    char error[REDIS_WORD_MAX];
    struct redis_count count;
};

const becalm_ns redis_bounds[5] = {BECALM_MS, 5 * BECALM_MS, 20 * BECALM_MS, 100 * BECALM_MS, BECALM_S};

static const char *const loss_words[REDIS_LOSSES] = {
    [REDIS_LOSS_NONE] = "none",
    [REDIS_LOSS_TIMEOUT] = "timeout",
    [REDIS_LOSS_REFUSED] = "refused",
    [REDIS_LOSS_CLOSED] = "closed",
    [REDIS_LOSS_NONSENSE] = "nonsense",
    [REDIS_LOSS_UNRESOLVED] = "unresolved",
    [REDIS_LOSS_TLS] = "tls",
    [REDIS_LOSS_SENTINEL] = "sentinel",
    [REDIS_LOSS_REPLICA] = "replica",
    [REDIS_LOSS_MOVED] = "MOVED",
    [REDIS_LOSS_READONLY] = "READONLY",
    [REDIS_LOSS_MASTERDOWN] = "MASTERDOWN",
    [REDIS_LOSS_LOADING] = "LOADING",
    [REDIS_LOSS_CLUSTERDOWN] = "CLUSTERDOWN",
    [REDIS_LOSS_TRYAGAIN] = "TRYAGAIN",
    [REDIS_LOSS_MISCONF] = "MISCONF",
    [REDIS_LOSS_NOREPLICAS] = "NOREPLICAS",
    [REDIS_LOSS_OOM] = "OOM",
    [REDIS_LOSS_BUSY] = "BUSY",
    [REDIS_LOSS_WRONGPASS] = "WRONGPASS",
    [REDIS_LOSS_NOAUTH] = "NOAUTH",
    [REDIS_LOSS_NOPERM] = "NOPERM",
    [REDIS_LOSS_OTHER] = "other",
};

const char *redis_loss_word(enum redis_loss loss)
{
    return loss_words[loss];
}

static enum redis_loss loss_of(const char *word)
{
    for (enum redis_loss loss = REDIS_LOSS_TIMEOUT; loss < REDIS_LOSS_OTHER; loss++) {
        if (strcmp(loss_words[loss], word) == 0) {
            return loss;
        }
    }
    return REDIS_LOSS_OTHER;
}

static void limit_arm(struct redis *redis, becalm_ns wait)
{
    wheel_arm(&redis->loop->wheel, &redis->limit, becalm_ns_after(redis->loop->now, wait));
}

/* ----------------------------------------------------------------------------------------------------- its end */

/* Drops all commands in flight. It is unknown whether the server has executed them. */
static void commands_drop(struct redis *redis)
{
    if (redis->along != NULL) {
        redis->along->next = NULL;
        *redis->last = redis->along;
        redis->along = NULL;
    }
    while (redis->first != NULL) {
        struct redis_command *command = redis->first;
        redis->first = command->next;
        redis->count.dropped++;
        redis_command_free(command);
        command->done(command, NULL);
    }
    redis->last = &redis->first;
}

static void link_close(struct redis *redis)
{
    if (redis->link != NULL) {
        redis->link->redis = NULL;
        wire_free(&redis->link->wire);
        bytes_free(&redis->link->wire.out);
        loop_bury(redis->loop, &redis->link->wire.source);
        redis->link = NULL;
    }
    wire_host_drop(redis->tls_host);
    redis->tls_host = NULL;
    reply_close(&redis->reader);
    timer_disarm(&redis->limit);
}

static void again_plan(struct redis *redis)
{
    struct becalm_wait wait;
    struct becalm_backoff_draw draw = {
        .n = ++redis->tries, .hint = BECALM_NEVER, .random = becalm_rand_next(&redis->loop->random)};
    becalm_backoff_wait(&redis->backoff, &draw, &wait);
    wheel_arm(&redis->loop->wheel, &redis->again, becalm_ns_after(redis->loop->now, wait.wait));
}

/* Marks the server as unreachable, and tells the user of the connection. */
static void leave(struct redis *redis)
{
    bool up = redis->state == REDIS_UP;
    link_close(redis);
    redis->state = REDIS_AWAY;
    commands_drop(redis);
    if (up && redis->options.user->lost != NULL) {
        redis->options.user->lost(redis->options.user);
    }
}

/* Is it a Sentinel that is connected to? */
static bool is_asking(const struct redis *redis)
{
    return redis->options.place.master[0] != 0 && redis->elsewhere[0] == 0;
}

void redis_lose(struct redis *redis, const char *why)
{
    snprintf(redis->error, sizeof redis->error, "%.*s", (int)strcspn(why, " "), why);
    redis->count.lost[loss_of(redis->error)]++;
    redis->turn = (redis->turn + 1) % redis->options.place.host_count;
    bool next = is_asking(redis) && redis->turn != 0; /* the next Sentinel is asked at once, without a wait */
    redis->elsewhere[0] = 0;
    redis->asks = false;
    redis->moves = 0;
    leave(redis);
    if (next) {
        wheel_arm(&redis->loop->wheel, &redis->again, redis->loop->now);
        return;
    }
    /* A name that was never asked for takes a moment. */
    bool asked = redis->tries < 2 && loss_of(redis->error) == REDIS_LOSS_UNRESOLVED;
    if (!redis->noted && !asked) {
        redis->noted = true;
        if (redis->options.note != NULL) {
            redis->options.note(redis->options.self, redis->error);
        }
    }
    again_plan(redis);
}

/* If a script lacks a permission, the error is a sentence that begins with ERR. */
const char *redis_refusal(const struct reply *reply)
{
    if (reply->kind != REPLY_ERROR) {
        return "nonsense";
    }
    return strstr(reply->text, "The user executing the script") != NULL ? "NOPERM" : reply->text;
}

void redis_good(struct redis *redis)
{
    redis->tries = 0;
    redis->moves = 0;
    if (redis->noted || !redis->was_good) {
        redis->noted = false;
        redis->was_good = true;
        if (redis->options.note != NULL) {
            redis->options.note(redis->options.self, NULL);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------- writing */

/* "$42\r\n". A call with a key waits while some fifty of these are written, and snprintf() would be half of it. Returns
 * its length. */
static size_t head_write(char head[HEAD_MOST], char kind, uint64_t number)
{
    char digits[HEAD_MOST];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    head[0] = kind;
    for (size_t i = 0; i < count; i++) {
        head[1 + i] = digits[count - 1 - i];
    }
    head[count + 1] = '\r';
    head[count + 2] = '\n';
    return count + 3;
}

static bool word_add(struct bytes *out, const char *text, size_t length)
{
    UNFILLED char word[HEAD_MOST + WORD_SHORT + 2];
    size_t size = head_write(word, '$', length);
    if (length > WORD_SHORT) {
        return bytes_add(out, word, size) && bytes_add(out, text, length) && bytes_add(out, "\r\n", 2);
    }
    memcpy(word + size, text, length);
    memcpy(word + size + length, "\r\n", 2);
    return bytes_add(out, word, size + length + 2);
}

bool redis_word(struct redis_command *command, const char *text, size_t length)
{
    command->count++;
    return word_add(&command->words, text, length);
}

bool redis_number(struct redis_command *command, uint64_t number)
{
    char text[HEAD_MOST];
    size_t length = head_write(text, ':', number);
    return redis_word(command, text + 1, length - 3);
}

void redis_command_free(struct redis_command *command)
{
    bytes_free(&command->words);
}

/* A short command of our own. */
static bool words_add(struct bytes *out, uint32_t count, const char *const *word)
{
    char head[HEAD_MOST];
    bool written = bytes_add(out, head, head_write(head, '*', count));
    for (uint32_t i = 0; i < count; i++) {
        written = written && word_add(out, word[i], strlen(word[i]));
    }
    return written;
}

static bool send_bytes(struct redis *redis, struct bytes *out, bool written)
{
    struct iovec part = {.iov_base = out->at, .iov_len = out->length};
    bool sent = written && wire_write(&redis->link->wire, &part, 1) >= 0;
    bytes_free(out);
    return sent;
}

static bool command_write(struct redis *redis, struct redis_command *command, struct bytes *out)
{
    static const char *const asking[] = {"ASKING"};
    const struct redis_script *script = command->script;
    char head[HEAD_MOST];
    uint32_t count = command->count + (script == NULL ? 0 : 2);
    bool written = true;
    if (redis->asks) {
        command->ahead = 1;
        written = words_add(out, 1, asking);
    }
    written = written && bytes_add(out, head, head_write(head, '*', count));
    if (script != NULL && command->whole) {
        written = written && word_add(out, "EVAL", 4) && word_add(out, script->text, script->length);
    } else if (script != NULL) {
        written = written && word_add(out, "EVALSHA", 7) && word_add(out, script->sha, 40);
    }
    return written && bytes_add(out, bytes_at(&command->words), bytes_left(&command->words));
}

static bool command_queue(struct redis *redis, struct redis_command *command, struct bytes *out)
{
    command->ahead = 0;
    command->next = NULL;
    command->sent_at = redis->loop->now;
    if (!command_write(redis, command, out)) {
        return false;
    }
    if (redis->first == NULL) {
        limit_arm(redis, redis->options.timeout);
    }
    *redis->last = command;
    redis->last = &command->next;
    return true;
}

/* A failed send is noticed at the next event. Until then the command counts as sent; then it is dropped. */
static bool command_send(struct redis *redis, struct redis_command *command)
{
    struct bytes out = {.at = NULL};
    struct redis_command *along = redis->along;
    if (!command_queue(redis, command, &out)) {
        bytes_free(&out);
        return false;
    }
    redis->along = NULL;
    bool written = along == NULL || command_queue(redis, along, &out);
    if (!written) { /* half of it may be there */
        redis->along = along;
    }
    if (!send_bytes(redis, &out, written)) {
        limit_arm(redis, 0);
    }
    return true;
}

bool redis_send(struct redis *redis, struct redis_command *command)
{
    return redis->state == REDIS_UP && command_send(redis, command);
}

bool redis_send_along(struct redis *redis, struct redis_command *command)
{
    if (redis->state != REDIS_UP || redis->along != NULL) {
        return false;
    }
    redis->along = command;
    return true;
}

void redis_send_late(struct redis *redis)
{
    struct redis_command *late = redis->along;
    redis->along = NULL;
    if (late != NULL && !redis_send(redis, late)) {
        redis->along = late;
    }
}

static bool greet_with(struct redis *redis, struct bytes *out, enum greeting what, const char *const *word)
{
    uint32_t count = 0;
    while (word[count] != NULL) {
        count++;
    }
    redis->greeting[redis->greeting_count++] = what;
    return words_add(out, count, word);
}

/* Authenticates, and waits for an answer: a hung server would execute commands later that no caller waits for. */
static bool greet(struct redis *redis)
{
    const struct redis_place *place = &redis->options.place;
    struct bytes out = {.at = NULL};
    char name[32];
    char database[16];
    bool written = true;
    redis->greeting_count = redis->greeted = 0;
    if (place->password[0] != 0) {
        const char *alone[] = {"AUTH", place->password, NULL};
        const char *both[] = {"AUTH", place->user, place->password, NULL};
        written = greet_with(redis, &out, GREET_LOGIN, place->user[0] != 0 ? both : alone);
    }
    if (place->database != 0) {
        snprintf(database, sizeof database, "%" PRIu32, place->database);
        written = written && greet_with(redis, &out, GREET_DATABASE, (const char *[]){"SELECT", database, NULL});
    }
    snprintf(name, sizeof name, "becalm-%08" PRIx32, (uint32_t)becalm_rand_next(&redis->loop->random));
    written = written && greet_with(redis, &out, GREET_NAME, (const char *[]){"CLIENT", "SETNAME", name, NULL});
    if (place->master[0] != 0) { /* the Sentinel's information may be outdated */
        written = written && greet_with(redis, &out, GREET_ROLE, (const char *[]){"ROLE", NULL});
    }
    redis->run[0] = 0;
    if (redis->options.wants_run) {
        written = written && greet_with(redis, &out, GREET_RUN, (const char *[]){"INFO", "server", NULL});
    }
    written = written && greet_with(redis, &out, GREET_PING, (const char *[]){"PING", NULL});
    return send_bytes(redis, &out, written);
}

static bool sentinel_ask(struct redis *redis)
{
    struct bytes out = {.at = NULL};
    const char *const word[] = {"SENTINEL", "get-master-addr-by-name", redis->options.place.master};
    bool written = words_add(&out, 3, word);
    return send_bytes(redis, &out, written);
}

/* ------------------------------------------------------------------------------------------------------- reading */

/* Another server has the keys: connects to it at once, but at most MOVES_MAX times in a row. */
static void move(struct redis *redis, const char *host, bool asks)
{
    char to[REDIS_HOST_MAX];
    snprintf(to, sizeof to, "%s", host);
    if (++redis->moves > MOVES_MAX) {
        redis_lose(redis, "MOVED");
        return;
    }
    redis->count.lost[REDIS_LOSS_MOVED] += redis->state == REDIS_UP;
    leave(redis);
    memcpy(redis->elsewhere, to, sizeof to);
    redis->asks = asks;
    wheel_arm(&redis->loop->wheel, &redis->again, redis->loop->now);
}

/* "10.0.0.1", "6379" as address_parse() takes it. An empty host is the one that says so. */
static bool host_join(const struct redis *redis, const char *host, size_t host_length, const char *port,
                      size_t port_length, char *text)
{
    struct address address;
    bool brackets = memchr(host, ':', host_length) != NULL;
    if (host_length == 0) {
        host = redis->host;
        const char *colon = strrchr(host, ':');
        host_length = colon == NULL ? 0 : (size_t)(colon - host);
    }
    int written = snprintf(text, REDIS_HOST_MAX, "%s%.*s%s:%.*s", brackets ? "[" : "", (int)host_length, host,
                           brackets ? "]" : "", (int)port_length, port);
    return written > 0 && (size_t)written < REDIS_HOST_MAX && address_parse(text, &address);
}

/* "MOVED 3999 127.0.0.1:6381", "ASK 3999 127.0.0.1:6381". */
static bool redirected(struct redis *redis, const struct reply *reply)
{
    char to[REDIS_HOST_MAX];
    bool asks = strncmp(reply->text, "ASK ", 4) == 0;
    if (reply->kind != REPLY_ERROR || (!asks && strncmp(reply->text, "MOVED ", 6) != 0)) {
        return false;
    }
    const char *slot = strchr(reply->text, ' ') + 1;
    const char *host = strchr(slot, ' ');
    const char *colon = host == NULL ? NULL : strrchr(host, ':');
    if (colon == NULL || !host_join(redis, host + 1, (size_t)(colon - host - 1), colon + 1, strlen(colon + 1), to)) {
        redis_lose(redis, "nonsense");
    } else {
        move(redis, to, asks);
    }
    return true;
}

static void become_up(struct redis *redis)
{
    redis->state = REDIS_UP;
    timer_disarm(&redis->limit);
    if (redis->options.user->up != NULL) {
        redis->options.user->up(redis->options.user);
    }
}

/* "run_id:", and its name until the end of the line. */
static void run_hear(struct redis *redis, const struct reply_item *item)
{
    static const char mark[] = "run_id:";
    const char *at = item->text == NULL ? NULL : memmem(item->text, item->length, mark, sizeof mark - 1);
    size_t left = at == NULL ? 0 : item->length - (size_t)(at - item->text) - (sizeof mark - 1);
    for (size_t i = 0; i < left && i + 1 < sizeof redis->run && isxdigit((unsigned char)at[sizeof mark - 1 + i]); i++) {
        redis->run[i] = at[sizeof mark - 1 + i];
        redis->run[i + 1] = 0;
    }
}

static void greeted(struct redis *redis, const struct reply *reply)
{
    bool right = reply->kind != REPLY_ERROR;
    switch (redis->greeting[redis->greeted++]) {
    case GREET_NAME: /* the server need not let us have a name */
        return;
    case GREET_RUN: /* nor know its own */
        if (right) {
            run_hear(redis, &reply->item[0]);
        }
        return;
    case GREET_ROLE:
        if (right && !reply_says(&reply->item[0], "master")) {
            redis_lose(redis, "replica");
            return;
        }
        break;
    case GREET_LOGIN:
    case GREET_DATABASE:
    case GREET_PING:
        break;
    }
    if (!right) {
        redis_lose(redis, reply->text);
    } else if (redis->greeted == redis->greeting_count) {
        become_up(redis);
    }
}

static void sentinel_told(struct redis *redis, const struct reply *reply)
{
    char to[REDIS_HOST_MAX];
    const struct reply_item *item = reply->item;
    bool right = reply->kind == REPLY_LIST && reply->count == 2 && item[0].text != NULL && item[1].text != NULL;
    if (!right || !host_join(redis, item[0].text, item[0].length, item[1].text, item[1].length, to)) {
        redis_lose(redis, reply->kind == REPLY_ERROR ? reply->text : "sentinel");
    } else {
        move(redis, to, false);
    }
}

static void time_count(struct redis *redis, const struct redis_command *command)
{
    becalm_ns spent = becalm_ns_since(redis->loop->now, command->sent_at);
    redis->count.answered++;
    redis->count.answered_at = redis->loop->now;
    redis->count.spent += spent;
    for (size_t i = 0; i < sizeof redis_bounds / sizeof *redis_bounds; i++) {
        redis->count.within[i] += spent <= redis_bounds[i];
    }
}

static void answered(struct redis *redis, const struct reply *reply)
{
    struct redis_command *command = redis->first;
    if (command == NULL) {
        redis_lose(redis, "nonsense"); /* a reply without a command */
        return;
    }
    if (command->ahead > 0) {
        command->ahead--;
        return;
    }
    if (redirected(redis, reply)) {
        return;
    }
    redis->first = command->next;
    redis->last = redis->first == NULL ? &redis->first : redis->last;
    if (redis->first == NULL) {
        timer_disarm(&redis->limit);
    } else {
        limit_arm(redis, redis->options.timeout);
    }
    bool unknown = reply->kind == REPLY_ERROR && strncmp(reply->text, "NOSCRIPT", 8) == 0;
    if (unknown && command->script != NULL && !command->whole) {
        command->whole = true;
        redis->count.reloads++;
        if (command_send(redis, command)) {
            return;
        }
    }
    time_count(redis, command);
    redis_command_free(command);
    command->done(command, reply);
}

static void reply_hear(struct redis *redis, const struct reply *reply)
{
    switch (redis->state) {
    case REDIS_ASKING:
        sentinel_told(redis, reply);
        break;
    case REDIS_GREETING:
        greeted(redis, reply);
        break;
    case REDIS_UP:
        answered(redis, reply);
        break;
    case REDIS_AWAY:
    case REDIS_CONNECTING:
        redis_lose(redis, "nonsense");
        break;
    }
}

static void replies_hear(struct redis *redis, const struct link *link)
{
    while (redis->link == link) {
        enum reply_next next = reply_next(&redis->reader);
        if (next == REPLY_BROKEN) {
            redis_lose(redis, "nonsense");
        }
        if (next != REPLY_THERE) {
            return;
        }
        reply_hear(redis, &redis->reader.reply);
    }
}

/* The socket is connected: TLS comes first, where there is one. True: it may speak now. */
static bool secure(struct redis *redis, struct link *link, uint32_t events)
{
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
        redis_lose(redis, link->wire.tls == NULL ? "refused" : "tls");
        return false;
    }
    if (redis->tls_host == NULL) {
        return true;
    }
    if (link->wire.tls == NULL && !wire_tls_connect(&link->wire, redis->tls_host, WIRE_OFFERS_H1, &redis->room)) {
        redis_lose(redis, "refused");
        return false;
    }
    switch (wire_shake(&link->wire)) {
    case WIRE_SHAKEN:
        return true;
    case WIRE_SHAKING:
        return false;
    case WIRE_UNSHAKEN:
    case WIRE_LOST:
        redis_lose(redis, "tls");
        return false;
    }
    return false;
}

/* The connection is established: sends the first commands. False: they could not be sent. */
static bool speak(struct redis *redis)
{
    redis->state = is_asking(redis) ? REDIS_ASKING : REDIS_GREETING;
    return redis->state == REDIS_ASKING ? sentinel_ask(redis) : greet(redis);
}

static void link_ready(struct source *source, uint32_t events)
{
    struct link *link = CONTAINER_OF(source, struct link, wire.source);
    struct redis *redis = link->redis;
    char bytes[READ_SIZE];
    wire_note(&link->wire, events);
    if (redis->state == REDIS_CONNECTING) {
        if (!secure(redis, link, events)) {
            return;
        }
        if (!speak(redis)) {
            redis_lose(redis, "closed");
            return;
        }
    }
    if (wire_blocked(&link->wire) && wire_write(&link->wire, NULL, 0) < 0) {
        redis_lose(redis, "closed");
        return;
    }
    while (redis->link == link && wire_readable(&link->wire)) {
        ssize_t got = wire_read(&link->wire, bytes, sizeof bytes);
        if (got == WIRE_LATER) {
            return;
        }
        if (got <= 0 || !reply_feed(&redis->reader, bytes, (size_t)got)) {
            redis_lose(redis, "closed");
            return;
        }
        replies_hear(redis, link);
    }
}

/* ----------------------------------------------------------------------------------------------------- beginning */

static bool address_find(struct redis *redis, union address_socket *socket)
{
    struct address address;
    if (redis->options.find != NULL) {
        return redis->options.find(redis->options.self, redis->host, socket);
    }
    bool right = address_parse(redis->host, &address) && address.kind != ADDRESS_NAME;
    *socket = address.socket;
    return right;
}

static struct link *link_open(struct redis *redis, const union address_socket *to)
{
    struct link *link = calloc(1, sizeof *link);
    int on = 1;
    if (link == NULL) {
        return NULL;
    }
    link->redis = redis;
    link->wire.source.ready = link_ready;
    link->wire.source.fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (link->wire.source.fd < 0) {
        free(link);
        return NULL;
    }
    if (to->any.sa_family != AF_UNIX) {
        setsockopt(link->wire.source.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    if ((connect(link->wire.source.fd, &to->any, address_length(to)) != 0 && errno != EINPROGRESS) ||
        loop_watch(redis->loop, &link->wire.source) != 0) {
        loop_bury(redis->loop, &link->wire.source);
        return NULL;
    }
    return link;
}

/* The name that the server's certificate must have: the host's without its port, unless another is written. */
static struct wire_host *tls_host_make(const struct redis *redis)
{
    char name[REDIS_HOST_MAX];
    const char *host = redis->host;
    size_t length = strlen(host);
    const char *colon = strrchr(host, ':');
    if (redis->options.server_name != NULL) {
        return wire_host_make(redis->options.tls, redis->options.server_name);
    }
    length = colon == NULL ? length : (size_t)(colon - host);
    bool brackets = length > 2 && host[0] == '[';
    snprintf(name, sizeof name, "%.*s", (int)(brackets ? length - 2 : length), host + brackets);
    return wire_host_make(redis->options.tls, name);
}

static void again_fires(struct timer *timer)
{
    struct redis *redis = CONTAINER_OF(timer, struct redis, again);
    struct redis_place *place = &redis->options.place;
    union address_socket to;
    memset(&to, 0, sizeof to);
    snprintf(redis->host, sizeof redis->host, "%s",
             redis->elsewhere[0] != 0 ? redis->elsewhere : place->host[redis->turn]);
    redis->count.connects++;
    if (redis->options.login != NULL) {
        redis->options.login(redis->options.login_self, place);
    }
    if (!address_find(redis, &to)) {
        redis_lose(redis, "unresolved");
        return;
    }
    redis->link = link_open(redis, &to);
    redis->tls_host = place->tls ? tls_host_make(redis) : NULL;
    if (redis->link == NULL || (place->tls && redis->tls_host == NULL) ||
        !reply_open(&redis->reader, redis->options.reply_bytes)) {
        redis_lose(redis, "refused");
        return;
    }
    redis->state = REDIS_CONNECTING;
    limit_arm(redis, is_asking(redis) ? redis->options.timeout / 3 : redis->options.timeout);
}

static void limit_fires(struct timer *timer)
{
    redis_lose(CONTAINER_OF(timer, struct redis, limit), "timeout");
}

struct redis *redis_make(const struct redis_options *options)
{
    static struct redis_user nobody;
    struct redis *redis = calloc(1, sizeof *redis);
    if (redis == NULL) {
        return NULL;
    }
    redis->loop = options->loop;
    redis->options = *options;
    redis->options.user = options->user == NULL ? &nobody : options->user;
    redis->options.timeout = options->timeout == 0 ? REDIS_TIMEOUT : options->timeout;
    redis->options.tls = options->tls == NULL ? NULL : tls_context_use(options->tls);
    redis->room.counts = &redis->tls_counts;
    redis->last = &redis->first;
    becalm_backoff_defaults(&redis->backoff);
    redis->backoff.base = options->wait_base == 0 ? 220 * BECALM_MS : options->wait_base;
    redis->backoff.cap = options->wait_cap == 0 ? 1800 * BECALM_MS : options->wait_cap;
    redis->limit.fire = limit_fires;
    redis->again.fire = again_fires;
    wheel_arm(&redis->loop->wheel, &redis->again, redis->loop->now);
    return redis;
}

void redis_free(struct redis *redis)
{
    if (redis == NULL) {
        return;
    }
    redis->state = REDIS_AWAY; /* its user has gone */
    link_close(redis);
    commands_drop(redis);
    timer_disarm(&redis->again);
    wire_room_free(&redis->room);
    if (redis->options.tls != NULL) {
        tls_context_drop(redis->options.tls);
    }
    free(redis);
}

void redis_wait_at_most(struct redis *redis, becalm_ns most)
{
    redis->backoff.cap = most;
}

enum redis_state redis_state(const struct redis *redis)
{
    return redis->state;
}

bool redis_waits(const struct redis *redis)
{
    return redis->state == REDIS_UP ? redis->first != NULL : redis->state != REDIS_AWAY;
}

bool redis_is_good(const struct redis *redis)
{
    return redis->state == REDIS_UP && redis->was_good && !redis->noted;
}

const char *redis_error(const struct redis *redis)
{
    return redis->error;
}

const char *redis_host(const struct redis *redis)
{
    return redis->host;
}

const char *redis_run(const struct redis *redis)
{
    return redis->run;
}

struct redis_count redis_count(const struct redis *redis)
{
    return redis->count;
}
