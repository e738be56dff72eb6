/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "store_redis.h"

#include "key_words.h"
#include "store_internal.h"

#include "container.h"
#include "message/packed.h"
#include "run/entropy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MISSES_MOST 3u          /* questions in a row that were not answered in time */
#define PROBE       BECALM_S    /* then it is asked so often whether it is back */
#define REPLY_MOST  (1u << 18)  /* bytes: an answer's body and its fields */
#define BEHIND_MOST (16u << 20) /* bytes of answers that Redis has not acknowledged; further answers are lost */
#define OWNER       16u

enum hold_state {
    HOLD_WAITING, /* for the connection */
    HOLD_ASKING,  /* the question is on its way */
    HOLD_OWNED,   /* its call is being made */
    HOLD_ENDING   /* its call is over or was given up, and the store has not acknowledged that yet */
};

/* One beginning of one key. */
struct store_hold {
    struct store_hold *next;
    struct store_hold **link;
    struct store_redis *store;
    enum hold_state state;
    struct store_key *key; /* belongs to the asker; valid as long as the asker exists */
    struct store_ask *ask; /* NULL: no call waits for the answer (any more) */
    struct redis_command command;
    bool flying;
    struct redis_command renewal;
    bool renewing;
    bool over;          /* the hold is freed when its renewal is answered */
    struct timer timer; /* ASKING: the timeout of the question; OWNED: the next renewal */
    struct task task;   /* ENDING: tells the store, after the client has got its answer */
    becalm_ns asked_at;
    unsigned char id[STORE_ID];
    unsigned char guard[STORE_ID];
    unsigned char fingerprint[STORE_HASH];
    unsigned char owner[OWNER];
    bool has_older;
    unsigned char older[2 * STORE_ID + STORE_HASH]; /* id, guard, fingerprint by the secret before */
    bool once;
    char where[STORE_WHERE];
    enum store_ending ending;
    struct key_stamp stamp; /* of the request that told the store the end */
    uint32_t status;
    struct bytes answer; /* fields, then body; sealed where that is asked for */
    size_t fields;
};

struct store_redis {
    struct store store; /* first */
    struct redis_user user;
    struct store_redis_options options;
    struct redis *redis;
    struct redis_script script;
    struct store_hold *holds;
    uint64_t behind; /* bytes of answers */
    uint32_t misses; /* in a row */
    bool silent;     /* the store does not answer in time */
    struct timer probe;
    struct redis_command ping;
    bool pinging;
};

static struct store_redis *of(struct store *store)
{
    return CONTAINER_OF(store, struct store_redis, store);
}

static void tally(BECALM_ATOMIC(uint64_t) * count, uint64_t by)
{
    atomic_fetch_add_explicit(count, by, memory_order_relaxed);
}

/* ---------------------------------------------------------------------------------------------------------- holds */

static void timer_fires(struct timer *);
static void task_runs(struct task *);

static void where_write(char *where, size_t size, const struct store_key *key)
{
    const struct becalm_text *endpoint = &key->endpoint;
    snprintf(where, size, "%.*s%s%.*s", (int)key->service.length, key->service.at, endpoint->at == NULL ? "" : "/",
             (int)(endpoint->at == NULL ? 0 : endpoint->length), endpoint->at == NULL ? "" : endpoint->at);
}

static struct store_hold *hold_make(struct store_redis *r, struct store_key *key, struct store_ask *ask)
{
    struct store_hold *hold = calloc(1, sizeof *hold);
    if (hold == NULL || !entropy_fill_now(hold->owner, sizeof hold->owner)) {
        free(hold);
        return NULL;
    }
    hold->store = r;
    hold->key = key;
    hold->ask = ask;
    hold->timer.fire = timer_fires;
    hold->task.run = task_runs;
    hold->asked_at = r->options.loop->now;
    hold->once = key->once;
    memcpy(hold->id, key->id, sizeof hold->id);
    memcpy(hold->guard, key->guard, sizeof hold->guard);
    memcpy(hold->fingerprint, key->fingerprint, sizeof hold->fingerprint);
    if (key->older != NULL) {
        hold->has_older = true;
        memcpy(hold->older, key->older->id, STORE_ID);
        memcpy(hold->older + STORE_ID, key->older->guard, STORE_ID);
        memcpy(hold->older + 2 * (size_t)STORE_ID, key->older->fingerprint, STORE_HASH);
    }
    where_write(hold->where, sizeof hold->where, key);
    hold->next = r->holds;
    hold->link = &r->holds;
    if (hold->next != NULL) {
        hold->next->link = &hold->next;
    }
    r->holds = hold;
    key->hold = hold;
    return hold;
}

static void answer_drop(struct store_hold *hold)
{
    hold->store->behind -= hold->answer.length;
    bytes_free(&hold->answer);
    hold->fields = 0;
}

/* Its renewal may still be on its way. */
static void hold_free(struct store_hold *hold)
{
    if (hold->link != NULL) {
        timer_disarm(&hold->timer);
        loop_not_later(hold->store->options.loop, &hold->task);
        answer_drop(hold);
        *hold->link = hold->next;
        if (hold->next != NULL) {
            hold->next->link = hold->link;
        }
        hold->link = NULL;
    }
    hold->over = true;
    if (!hold->renewing) {
        free(hold);
    }
}

/* -------------------------------------------------------------------------------------------------------- sending */

static bool word(struct redis_command *command, const char *text)
{
    return redis_word(command, text, strlen(text));
}

static uint64_t ms(becalm_ns time)
{
    return time / BECALM_MS;
}

/* All that there is to know of it, so that the store can write it again if it has forgotten. */
static bool words_begin(struct store_hold *hold, struct redis_command *command, const char *what)
{
    struct store_redis *r = hold->store;
    struct keyring *ring = r->options.keyring;
    struct key_names names = {.keyring = ring,
                              .redis = r->redis,
                              .id = hold->id,
                              .guard = hold->guard,
                              .older = hold->has_older && hold->state == HOLD_ASKING ? hold->older : NULL};
    command->script = &r->script;
    bool begun = key_words(command, &names, what);
    hold->stamp = names.stamp;
    return begun && redis_word(command, (const char *)hold->owner, OWNER) &&
           redis_word(command, (const char *)hold->fingerprint, STORE_HASH) && word(command, hold->once ? "1" : "0") &&
           redis_number(command, ms(ring->ttl)) && word(command, hold->where);
}

/* True: it is on its way. */
static bool hold_send(struct store_hold *hold, struct redis_command *command, bool filled)
{
    if (filled && redis_send(hold->store->redis, command)) {
        return true;
    }
    redis_command_free(command);
    return false;
}

/* Must the store be sure that it has not forgotten the key ("1" or "2")? Not if the policy lets calls be made without
 * the store. "2": this process has listed keys on its present connection, so a store that has seen no listing for long
 * can conclude that its clock was set. */
static const char *must_be_sure(const struct store_hold *hold)
{
    struct keyring *ring = hold->store->options.keyring;
    if (!hold->once || (ring->away != BECALM_KEYS_AWAY_AUTO && ring->away != BECALM_KEYS_AWAY_REFUSE)) {
        return "0";
    }
    return atomic_load_explicit(&ring->listed, memory_order_relaxed) ? "2" : "1";
}

static void begin_done(struct redis_command *, const struct reply *);

static bool begin_send(struct store_hold *hold)
{
    struct redis_command *command = &hold->command;
    *command = (struct redis_command){.done = begin_done};
    hold->state = HOLD_ASKING;
    bool filled =
        words_begin(hold, command, "begin") && word(command, must_be_sure(hold)) &&
        word(command, hold->store->options.keyring->fence ? "1" : "0") &&
        (!hold->has_older || redis_word(command, (const char *)hold->older + 2 * (size_t)STORE_ID, STORE_HASH));
    hold->flying = hold_send(hold, command, filled);
    return hold->flying;
}

static const char *ending_word(enum store_ending ending)
{
    switch (ending) {
    case STORE_END_ANSWER:
        return "answer";
    case STORE_END_RELEASE:
        return "release";
    case STORE_END_LOST:
        return "lost";
    case STORE_END_UNKNOWN:
        return "unknown";
    }
    return "unknown";
}

static void end_done(struct redis_command *, const struct reply *);

/* If the end can't be sent now, it is sent when the connection is up again. */
static void end_send(struct store_hold *hold)
{
    const struct keyring *ring = hold->store->options.keyring;
    struct redis_command *command = &hold->command;
    const char *seal = ring->seals.count == 0 ? "" : ring->seals.seal[0].name;
    if (hold->flying || redis_state(hold->store->redis) != REDIS_UP) {
        return;
    }
    *command = (struct redis_command){.done = end_done};
    bool filled = words_begin(hold, command, "end") && word(command, ending_word(hold->ending)) &&
                  redis_number(command, hold->status) && word(command, seal) &&
                  redis_word(command, bytes_at(&hold->answer), hold->fields) &&
                  redis_word(command, bytes_at(&hold->answer) + hold->fields, hold->answer.length - hold->fields);
    hold->flying = hold_send(hold, command, filled);
}

static void task_runs(struct task *task)
{
    end_send(CONTAINER_OF(task, struct store_hold, task));
}

static void renewal_done(struct redis_command *, const struct reply *);

static void renew(struct store_hold *hold)
{
    struct store_redis *r = hold->store;
    struct loop *loop = r->options.loop;
    wheel_arm(&loop->wheel, &hold->timer, becalm_ns_after(loop->now, r->options.keyring->lease / 3));
    if (hold->renewing || redis_state(r->redis) != REDIS_UP) {
        return;
    }
    hold->renewal = (struct redis_command){.done = renewal_done};
    hold->renewing = hold_send(hold, &hold->renewal, words_begin(hold, &hold->renewal, "renew"));
}

/* -------------------------------------------------------------------------------------------------------- hearing */

/* The store has answered, with any reply. */
static void heard(struct store_redis *r)
{
    r->misses = 0;
    r->silent = false;
    timer_disarm(&r->probe);
}

/* NULL: the reply is no list. */
static const struct reply_item *list_of(const struct reply *reply)
{
    return reply->kind == REPLY_LIST && reply->count > 0 ? reply->item : NULL;
}

/* Is the reply valid? If not, the connection is closed. */
static bool right(struct store_redis *r, const struct reply *reply, bool fine)
{
    heard(r);
    if (fine) {
        redis_good(r->redis);
    } else {
        redis_lose(r->redis, redis_refusal(reply));
    }
    return fine;
}

/* The call goes on as the policy has it for a store that is away. */
static enum store_verdict without(struct store_redis *r, struct store_key *key, struct store_ask *ask)
{
    enum becalm_keys_away away = r->options.keyring->away;
    if (away == BECALM_KEYS_AWAY_AUTO) {
        away = key->once ? BECALM_KEYS_AWAY_REFUSE : BECALM_KEYS_AWAY_LOCAL;
    }
    struct store_tally *t = r->options.tally;
    switch (away) {
    case BECALM_KEYS_AWAY_LOCAL: /* the local store counts the verdict */
        tally(&t->local, 1);
        return store_begin(r->options.local, key, r->options.loop->now, ask);
    case BECALM_KEYS_AWAY_PASS:
        tally(&t->verdict[STORE_PASSED], 1);
        return STORE_PASSED;
    case BECALM_KEYS_AWAY_AUTO:
    case BECALM_KEYS_AWAY_REFUSE:
        break;
    }
    tally(&t->verdict[STORE_AWAY], 1);
    return STORE_AWAY;
}

/* Tells the asker, which may do anything, even free the store's hold. */
static void tell(struct store_ask *ask, enum store_verdict verdict)
{
    ask->verdict = verdict;
    ask->then(ask);
}

/* The question got no answer: the call that asked goes on without the store. */
static void tell_away(struct store_hold *hold)
{
    struct store_redis *r = hold->store;
    struct store_ask *ask = hold->ask;
    struct store_key *key = hold->key;
    hold->ask = NULL;
    hold->key = NULL;
    key->hold = NULL;
    tell(ask, without(r, key, ask));
}

/* Nothing was sent to a host: as if it had never begun, also if it did. */
static void take_back(struct store_hold *hold)
{
    hold->state = HOLD_ENDING;
    hold->ending = STORE_END_RELEASE;
    timer_disarm(&hold->timer);
    end_send(hold);
}

static struct becalm_text text_of_item(const struct reply_item *item)
{
    return (struct becalm_text){item->text == NULL ? "" : item->text, item->text == NULL ? 0 : item->length};
}

/* The parts of a stored answer: "done", status, seal, fields, body. NULL: it can't be read. */
static struct store_answer *answer_read(const struct store_hold *hold, const struct reply_item *item)
{
    const struct seals *seals = &hold->store->options.keyring->seals;
    struct becalm_text seal = text_of_item(&item[2]);
    struct becalm_text id = {(const char *)hold->id, sizeof hold->id};
    struct store_result result = {
        .status = (uint32_t)item[1].number, .fields = text_of_item(&item[3]), .body = text_of_item(&item[4])};
    struct bytes fields = {.at = NULL};
    struct bytes body = {.at = NULL};
    bool fine = true;
    if (seal.length > 0) {
        fine = seal_open(seals, seal, result.fields, id, &fields) && seal_open(seals, seal, result.body, id, &body);
        result.fields = (struct becalm_text){bytes_at(&fields), bytes_left(&fields)};
        result.body = (struct becalm_text){bytes_at(&body), bytes_left(&body)};
    }
    struct store_answer *answer = fine && packed_is_right(result.fields) ? store_answer_make(&result) : NULL;
    bytes_free(&fields);
    bytes_free(&body);
    return answer;
}

/* The answer came from a record under the previous secret: that record's name is used for display and to unseal the
 * answer. */
static void older_take(struct store_hold *hold)
{
    memcpy(hold->id, hold->older, STORE_ID);
    if (hold->key != NULL) {
        memcpy(hold->key->id, hold->older, STORE_ID);
    }
}

/* The verdict in the reply. STORE_LATER: the reply is not valid. */
static enum store_verdict verdict_read(struct store_hold *hold, const struct reply *reply, struct store_ask *ask)
{
    static const struct {
        const char *word;
        enum store_verdict verdict;
    } plain[] = {{"begun", STORE_BEGUN},
                 {"flight", STORE_IN_FLIGHT},
                 {"held", STORE_HELD},
                 {"mismatch", STORE_MISMATCH},
                 {"scope", STORE_OTHER_SCOPE}};
    const struct reply_item *item = list_of(reply);
    uint32_t count = item == NULL ? 0 : reply->count;
    if (hold->has_older && count > 1 && reply_says(&item[count - 1], "older")) {
        older_take(hold);
        count--;
    }
    ask->fence = count > 1 && item[1].number > 0 ? (uint64_t)item[1].number : 0;
    for (size_t i = 0; item != NULL && i < sizeof plain / sizeof *plain; i++) {
        if (reply_says(item, plain[i].word)) {
            return plain[i].verdict;
        }
    }
    if (item != NULL && reply_says(item, "forgot") && count == 2 && item[1].number >= 0) {
        /* The store is never in doubt for longer than a lease. The wait goes to clients, so it is bounded here. */
        becalm_ns lease = hold->store->options.keyring->lease;
        ask->wait = (uint64_t)item[1].number < ms(lease) ? (uint64_t)item[1].number * BECALM_MS : lease;
        return STORE_FORGOT;
    }
    bool done = item != NULL && reply_says(item, "done") && count == 5;
    bool lost = item != NULL && reply_says(item, "lost") && count == 2;
    if ((!done && !lost) || item[1].number < 100 || item[1].number > 999) {
        return STORE_LATER;
    }
    ask->status = (uint32_t)item[1].number;
    ask->answer = done ? answer_read(hold, item) : NULL;
    return ask->answer != NULL ? STORE_ANSWERED : STORE_ANSWER_LOST;
}

static void wait_tally(struct store_tally *t, becalm_ns spent)
{
    tally(&t->waits, 1);
    tally(&t->waited, spent);
    for (size_t i = 0; i < sizeof redis_bounds / sizeof *redis_bounds; i++) {
        tally(&t->wait_within[i], spent <= redis_bounds[i]);
    }
}

/* The key has begun, or another call has it. */
static void begin_heard(struct store_hold *hold, enum store_verdict verdict)
{
    struct store_redis *r = hold->store;
    struct store_ask *ask = hold->ask;
    wait_tally(r->options.tally, becalm_ns_since(r->options.loop->now, hold->asked_at));
    tally(&r->options.tally->verdict[verdict], ask != NULL);
    hold->ask = NULL;
    if (verdict == STORE_BEGUN && ask == NULL) {
        take_back(hold);
        return;
    }
    if (verdict == STORE_BEGUN) {
        hold->state = HOLD_OWNED;
        hold->key = NULL;
        wheel_arm(&r->options.loop->wheel, &hold->timer,
                  becalm_ns_after(r->options.loop->now, r->options.keyring->lease / 3));
    } else {
        if (ask != NULL) {
            hold->key->hold = NULL;
        }
        hold_free(hold);
    }
    if (ask != NULL) {
        tell(ask, verdict);
    }
}

/* It is not certain that the store has the key: treats the key as not begun. */
static void begin_failed(struct store_hold *hold)
{
    struct store_ask *ask = hold->ask;
    take_back(hold);
    if (ask != NULL) {
        tell_away(hold);
    }
}

static void replicas_done(struct redis_command *command, const struct reply *reply)
{
    struct store_hold *hold = CONTAINER_OF(command, struct store_hold, command);
    struct store_redis *r = hold->store;
    bool told = reply != NULL && reply->kind == REPLY_NUMBER;
    hold->flying = false;
    if (told && reply->item[0].number >= (long long)r->options.keyring->replicas) {
        begin_heard(hold, STORE_BEGUN);
        return;
    }
    begin_failed(hold);
    if (reply != NULL && !told) {
        (void)right(r, reply, false);
    }
}

/* The call waits until replicas have its key, too. False: it need not. */
static bool replicas_ask(struct store_hold *hold)
{
    const struct keyring *ring = hold->store->options.keyring;
    struct redis_command *command = &hold->command;
    if (ring->replicas == 0 || !hold->once || hold->ask == NULL) {
        return false;
    }
    *command = (struct redis_command){.done = replicas_done};
    hold->flying = hold_send(hold, command,
                             word(command, "WAIT") && redis_number(command, ring->replicas) &&
                                 redis_number(command, ms(ring->timeout)));
    if (!hold->flying) {
        begin_failed(hold);
    }
    return true;
}

static void begin_done(struct redis_command *command, const struct reply *reply)
{
    struct store_hold *hold = CONTAINER_OF(command, struct store_hold, command);
    struct store_redis *r = hold->store;
    struct store_ask nobody = {.answer = NULL};
    hold->flying = false;
    enum store_verdict verdict =
        reply == NULL ? STORE_LATER : verdict_read(hold, reply, hold->ask == NULL ? &nobody : hold->ask);
    store_answer_free(nobody.answer);
    if (verdict != STORE_LATER) {
        (void)right(r, reply, true);
        if (verdict != STORE_BEGUN || !replicas_ask(hold)) {
            begin_heard(hold, verdict);
        }
        return;
    }
    /* The connection was lost, or the reply is invalid: the key may have begun. */
    begin_failed(hold);
    if (reply != NULL) {
        (void)right(r, reply, false);
    }
}

/* If the store forgets it, it is told again. */
static void remember(const struct store_hold *hold, uint64_t number)
{
    const struct store_redis *r = hold->store;
    becalm_ns now = r->options.loop->now;
    if (hold->once && hold->ending != STORE_END_RELEASE) {
        struct key_done done = {.status = hold->ending == STORE_END_UNKNOWN ? 0 : hold->status,
                                .number = number,
                                .until = becalm_ns_after(now, r->options.keyring->ttl),
                                .where = hold->where};
        memcpy(done.id, hold->id, sizeof done.id);
        memcpy(done.guard, hold->guard, sizeof done.guard);
        memcpy(done.fingerprint, hold->fingerprint, sizeof done.fingerprint);
        key_memory_add(r->options.keyring->memory, &done, &hold->stamp, now);
    }
}

static void end_done(struct redis_command *command, const struct reply *reply)
{
    struct store_hold *hold = CONTAINER_OF(command, struct store_hold, command);
    struct store_redis *r = hold->store;
    const struct reply_item *item = reply == NULL ? NULL : list_of(reply);
    hold->flying = false;
    if (reply == NULL || !right(r, reply, item != NULL && (reply_says(item, "ok") || reply_says(item, "fenced")))) {
        return; /* told again when it is back */
    }
    tally(&r->options.tally->fenced, reply_says(item, "fenced"));
    if (reply->count == 2 && item[1].number >= 0) {
        remember(hold, (uint64_t)item[1].number);
    }
    hold_free(hold);
}

static void renewal_done(struct redis_command *command, const struct reply *reply)
{
    struct store_hold *hold = CONTAINER_OF(command, struct store_hold, renewal);
    struct store_redis *r = hold->store;
    hold->renewing = false;
    if (hold->over) {
        free(hold);
    }
    if (reply != NULL) {
        (void)right(r, reply, list_of(reply) != NULL);
    }
}

static void ping_done(struct redis_command *command, const struct reply *reply)
{
    struct store_redis *r = CONTAINER_OF(command, struct store_redis, ping);
    r->pinging = false;
    if (reply != NULL) {
        heard(r);
    }
}

static void probe_fires(struct timer *timer)
{
    struct store_redis *r = CONTAINER_OF(timer, struct store_redis, probe);
    struct loop *loop = r->options.loop;
    wheel_arm(&loop->wheel, timer, becalm_ns_after(loop->now, PROBE));
    if (!r->pinging) {
        r->ping = (struct redis_command){.done = ping_done};
        r->pinging = redis_word(&r->ping, "PING", 4) && redis_send(r->redis, &r->ping);
        if (!r->pinging) {
            redis_command_free(&r->ping);
        }
    }
}

/* ------------------------------------------------------------------------------------------------------ connection */

static void missed(struct store_redis *r)
{
    struct loop *loop = r->options.loop;
    if (++r->misses >= MISSES_MOST && !r->silent) {
        r->silent = true;
        wheel_arm(&loop->wheel, &r->probe, becalm_ns_after(loop->now, PROBE));
    }
}

static void timer_fires(struct timer *timer)
{
    struct store_hold *hold = CONTAINER_OF(timer, struct store_hold, timer);
    struct store_redis *r = hold->store;
    switch (hold->state) {
    case HOLD_WAITING: {
        struct store_ask *ask = hold->ask;
        struct store_key *key = hold->key;
        key->hold = NULL;
        hold_free(hold);
        tell(ask, without(r, key, ask));
        break;
    }
    case HOLD_ASKING: /* the key is released when the answer comes, or when the connection is lost */
        missed(r);
        tell_away(hold);
        break;
    case HOLD_OWNED:
        renew(hold);
        break;
    case HOLD_ENDING:
        break;
    }
}

/* Sends the requests that waited for the connection. Sending calls no asker, so the list does not change meanwhile. */
static void connection_up(struct redis_user *user)
{
    struct store_redis *r = CONTAINER_OF(user, struct store_redis, user);
    heard(r);
    for (struct store_hold *hold = r->holds; hold != NULL; hold = hold->next) {
        switch (hold->state) {
        case HOLD_WAITING:
            if (!begin_send(hold)) {
                hold->state = HOLD_WAITING; /* until its time is over */
            }
            break;
        case HOLD_ASKING:
            break;
        case HOLD_OWNED:
            renew(hold);
            break;
        case HOLD_ENDING:
            end_send(hold);
            break;
        }
    }
}

/* ----------------------------------------------------------------------------------------- the store's interface */

/* Before the first connection requests wait for it. */
static bool reachable(const struct store_redis *r)
{
    return !r->silent && (redis_state(r->redis) == REDIS_UP || redis_error(r->redis)[0] == 0);
}

static enum store_verdict redis_begin(struct store *store, struct store_key *key, becalm_ns now, struct store_ask *ask)
{
    struct store_redis *r = of(store);
    struct store_hold *hold = reachable(r) ? hold_make(r, key, ask) : NULL;
    bool up = redis_state(r->redis) == REDIS_UP;
    if (hold != NULL && up && !begin_send(hold)) {
        hold_free(hold);
        hold = NULL;
    }
    if (hold == NULL) {
        key->hold = NULL;
        return without(r, key, ask);
    }
    wheel_arm(&r->options.loop->wheel, &hold->timer, becalm_ns_after(now, r->options.keyring->timeout));
    return STORE_LATER;
}

static void redis_cancel(struct store *store, const struct store_key *key)
{
    struct store_hold *hold = key->hold;
    (void)store;
    timer_disarm(&hold->timer);
    hold->ask = NULL;
    hold->key = NULL;
    if (hold->state == HOLD_WAITING) {
        hold_free(hold);
    }
}

/* Copies the answer, sealed if that is asked for. False: it is too large, or there is no memory. */
static bool answer_take(struct store_hold *hold, const struct store_result *result)
{
    struct store_redis *r = hold->store;
    const struct keyring *ring = r->options.keyring;
    struct becalm_text id = {(const char *)hold->id, sizeof hold->id};
    struct bytes *out = &hold->answer;
    bool fits = result->body.length <= ring->max_answer && r->behind + result->body.length <= BEHIND_MOST;
    bool taken = false;
    if (fits && ring->seals.count > 0) {
        taken = seal_close(&ring->seals, result->fields, id, out);
        hold->fields = out->length;
        taken = taken && seal_close(&ring->seals, result->body, id, out);
    } else if (fits) {
        taken = bytes_add(out, result->fields.at, result->fields.length) &&
                bytes_add(out, result->body.at, result->body.length);
        hold->fields = result->fields.length;
    }
    r->behind += out->length;
    if (!taken) {
        answer_drop(hold);
    }
    return taken;
}

static void redis_end(struct store *store, const struct store_key *key, becalm_ns now, const struct store_end *end)
{
    struct store_redis *r = of(store);
    struct store_hold *hold = key->hold;
    struct store_tally *t = r->options.tally;
    if (hold == NULL) {
        store_end(r->options.local, key, now, end);
        return;
    }
    hold->ending = end->kind;
    hold->status = end->result.status;
    if (end->kind == STORE_END_ANSWER && !answer_take(hold, &end->result)) {
        hold->ending = hold->once ? STORE_END_LOST : STORE_END_RELEASE;
        tally(&t->too_large, 1);
    }
    tally(&t->stored, hold->ending == STORE_END_ANSWER);
    tally(&t->released, hold->ending == STORE_END_RELEASE);
    hold->state = HOLD_ENDING;
    timer_disarm(&hold->timer);
    /* The end of the answer is written to the client after this function returns, and before the request to the store:
     * a server that wakes up may take the CPU from the process that wakes it. */
    loop_later(r->options.loop, &hold->task);
}

static void redis_store_free(struct store *store)
{
    struct store_redis *r = of(store);
    redis_free(r->redis); /* nothing is on its way any more */
    while (r->holds != NULL) {
        hold_free(r->holds);
    }
    timer_disarm(&r->probe);
    keyring_drop(r->options.keyring);
    free(r);
}

bool store_redis_idle(const struct store *store)
{
    const struct store_redis *r = (const struct store_redis *)store;
    return r->holds == NULL;
}

struct store *store_redis_make(const struct store_redis_options *options)
{
    struct store_redis *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return NULL;
    }
    struct redis_options redis = {.loop = options->loop,
                                  .find = options->find,
                                  .self = options->self,
                                  .user = &r->user,
                                  .wait_cap = key_patience(options->keyring),
                                  .wants_run = true,
                                  .reply_bytes = REPLY_MOST};
    redis_site_use(&options->keyring->site, &redis);
    r->store = (struct store){.begin = redis_begin, .end = redis_end, .cancel = redis_cancel, .free = redis_store_free};
    r->user = (struct redis_user){.up = connection_up};
    r->options = *options;
    r->script = redis_script("keys");
    r->probe.fire = probe_fires;
    r->redis = redis_make(&redis);
    if (r->redis == NULL) {
        free(r);
        return NULL;
    }
    keyring_use(r->options.keyring);
    return &r->store;
}

void store_tally_count(struct store_tally *t, struct store_counts *counts)
{
    uint64_t verdict[STORE_VERDICTS];
    for (uint32_t i = 0; i < STORE_VERDICTS; i++) {
        verdict[i] = atomic_load_explicit(&t->verdict[i], memory_order_relaxed);
    }
    counts->begun += verdict[STORE_BEGUN];
    counts->answered += verdict[STORE_ANSWERED];
    counts->in_flight += verdict[STORE_IN_FLIGHT];
    counts->unknown += verdict[STORE_HELD];
    counts->answer_lost += verdict[STORE_ANSWER_LOST];
    counts->mismatch += verdict[STORE_MISMATCH];
    counts->other_scope += verdict[STORE_OTHER_SCOPE];
    counts->full += verdict[STORE_FULL];
    counts->away = verdict[STORE_AWAY];
    counts->forgot = verdict[STORE_FORGOT];
    counts->passed = verdict[STORE_PASSED];
    counts->local = atomic_load_explicit(&t->local, memory_order_relaxed);
    counts->stored += atomic_load_explicit(&t->stored, memory_order_relaxed);
    counts->released += atomic_load_explicit(&t->released, memory_order_relaxed);
    counts->too_large += atomic_load_explicit(&t->too_large, memory_order_relaxed);
    counts->fenced = atomic_load_explicit(&t->fenced, memory_order_relaxed);
    counts->waits.count = atomic_load_explicit(&t->waits, memory_order_relaxed);
    counts->waits.spent = atomic_load_explicit(&t->waited, memory_order_relaxed);
    for (size_t i = 0; i < METRICS_REDIS_BOUNDS; i++) {
        counts->waits.bound[i] = redis_bounds[i];
        counts->waits.within[i] = atomic_load_explicit(&t->wait_within[i], memory_order_relaxed);
    }
}
