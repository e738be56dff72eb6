/* SPDX-License-Identifier: MIT */
#include "join.h"

#include "http/text_internal.h"

#include <stdlib.h>

#define ROWS   1024u
#define PLACES 8u
#define LONGEST                                                                                                      \
    (60 * BECALM_S) /* the time that an entry is kept for a request without a deadline, if its end is never reported \
                     */

struct entry {
    uint64_t key; /* 0: the place is free */
    uint64_t peer;
    becalm_ns deadline_at;
    becalm_ns ends_at;
    uint32_t requests; /* in progress */
    bool trusted;
    bool strange; /* several peers that are not trusted have come with this id: it proves nothing */
    bool several; /* more than one request had it while it was here */
    struct join_mark mark;
};

struct row {
    BECALM_ATOMIC(uint32_t) taken;
    struct entry entry[PLACES];
};

struct join_table {
    struct row row[ROWS];
    BECALM_ATOMIC(uint64_t) count[JOIN_COUNTS];
};

static void count(struct join_table *table, enum join_count what)
{
    atomic_fetch_add_explicit(&table->count[what], 1, memory_order_relaxed);
}

uint64_t join_count(const struct join_table *table, enum join_count what)
{
    return atomic_load_explicit(&table->count[what], memory_order_relaxed);
}

struct join_table *join_table_make(void)
{
    return calloc(1, sizeof(struct join_table));
}

void join_table_free(struct join_table *table)
{
    free(table);
}

/* NULL: another thread is there just now. */
static struct row *row_take(struct join_table *table, uint64_t key)
{
    struct row *row = &table->row[key % ROWS];
    return atomic_exchange_explicit(&row->taken, 1, memory_order_acquire) == 0 ? row : NULL;
}

static void row_give(struct row *row)
{
    atomic_store_explicit(&row->taken, 0, memory_order_release);
}

static struct entry *row_find(struct row *row, uint64_t key, becalm_ns now)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        if (row->entry[i].key == key) {
            return row->entry[i].ends_at > now ? &row->entry[i] : NULL;
        }
    }
    return NULL;
}

/* The place of this key, else a free one, else that of the entry that ends first. */
static struct entry *row_place(struct row *row, uint64_t key)
{
    struct entry *place = &row->entry[0];
    for (uint32_t i = 0; i < PLACES; i++) {
        struct entry *entry = &row->entry[i];
        if (entry->key == key) {
            return entry;
        }
        if (place->key != 0 && (entry->key == 0 || entry->ends_at < place->ends_at)) {
            place = entry;
        }
    }
    return place;
}

static void entry_join(struct entry *entry, const struct join_request *request, becalm_ns ends_at)
{
    entry->strange |= entry->peer != request->peer && !(entry->trusted && request->trusted);
    entry->several = true;
    entry->requests++;
    entry->deadline_at = becalm_ns_max(entry->deadline_at, request->deadline_at);
    entry->ends_at = becalm_ns_max(entry->ends_at, ends_at);
}

void join_enter(struct join_table *table, const struct join_keys *keys, const struct join_request *request,
                becalm_ns now)
{
    becalm_ns ends_at = becalm_ns_min(request->deadline_at, becalm_ns_after(now, LONGEST));
    for (uint32_t i = 0; i < keys->count; i++) {
        struct row *row = row_take(table, keys->key[i]);
        if (row == NULL) {
            continue;
        }
        struct entry *entry = row_find(row, keys->key[i], now);
        if (entry != NULL) {
            entry_join(entry, request, ends_at);
        } else {
            struct entry *place = row_place(row, keys->key[i]);
            if (place->key != 0 && place->key != keys->key[i] && place->ends_at > now) {
                count(table, JOIN_PUSHED_OUT);
            }
            *place = (struct entry){
                .key = keys->key[i],
                .peer = request->peer,
                .deadline_at = request->deadline_at,
                .ends_at = ends_at,
                .requests = 1,
                .trusted = request->trusted,
            };
        }
        row_give(row);
    }
}

void join_leave(struct join_table *table, const struct join_keys *keys)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        struct row *row = row_take(table, keys->key[i]);
        struct entry *entry = row == NULL ? NULL : row_find(row, keys->key[i], 0);
        if (entry != NULL && --entry->requests == 0) {
            *entry = (struct entry){0};
        }
        if (row != NULL) {
            row_give(row);
        }
    }
}

/* Is there an entry that is over? */
static bool row_expired(const struct row *row, uint64_t key, becalm_ns now)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        if (row->entry[i].key == key) {
            return row->entry[i].ends_at <= now;
        }
    }
    return false;
}

/* The same as join_deadline(); also returns how the lookup ended. */
static enum join_count look(struct join_table *table, const struct join_keys *keys, becalm_ns now,
                            becalm_ns *deadline_at)
{
    enum join_count found = keys->count == 0 ? JOIN_NO_ID : JOIN_UNKNOWN;
    for (uint32_t i = 0; i < keys->count; i++) {
        struct row *row = row_take(table, keys->key[i]);
        const struct entry *entry = row == NULL ? NULL : row_find(row, keys->key[i], now);
        if (entry != NULL) {
            found = entry->strange ? JOIN_STRANGE : JOIN_JOINED;
            *deadline_at = entry->strange ? BECALM_NEVER : entry->deadline_at;
        } else if (row != NULL && row_expired(row, keys->key[i], now)) {
            found = JOIN_EXPIRED;
        }
        if (row != NULL) {
            row_give(row);
        }
        if (entry != NULL) {
            return found;
        }
    }
    return found;
}

becalm_ns join_deadline(struct join_table *table, const struct join_keys *keys, becalm_ns now)
{
    becalm_ns deadline_at = BECALM_NEVER;
    count(table, look(table, keys, now, &deadline_at));
    return deadline_at;
}

void join_note(struct join_table *table, const struct join_keys *keys, struct join_mark mark, becalm_ns now)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        struct row *row = row_take(table, keys->key[i]);
        struct entry *entry = row == NULL ? NULL : row_find(row, keys->key[i], now);
        if (entry != NULL) {
            entry->mark = mark;
        }
        if (row != NULL) {
            row_give(row);
        }
    }
}

struct join_mark join_mark(struct join_table *table, const struct join_keys *keys, becalm_ns now)
{
    struct join_mark mark = {BECALM_MARK_NONE, BECALM_WHY_NONE};
    for (uint32_t i = 0; i < keys->count && mark.kind == BECALM_MARK_NONE; i++) {
        struct row *row = row_take(table, keys->key[i]);
        const struct entry *entry = row == NULL ? NULL : row_find(row, keys->key[i], now);
        if (entry != NULL && !entry->several && !entry->strange) {
            mark = entry->mark;
        }
        if (row != NULL) {
            row_give(row);
        }
    }
    return mark;
}

/* ---- ids ---- */

static struct becalm_text up_to(struct becalm_text value, char end)
{
    const char *at = value.length == 0 ? NULL : memchr(value.at, end, value.length);
    return (struct becalm_text){value.at, at == NULL ? value.length : (size_t)(at - value.at)};
}

/* "00-" and 32 digits, and more behind them. All zeroes are no id. */
static struct becalm_text trace_of(struct becalm_text value)
{
    static const char nothing[] = "00000000000000000000000000000000";
    enum { FROM = 3, DIGITS = sizeof nothing - 1 };
    if (value.length <= FROM + DIGITS || value.at[FROM - 1] != '-' || value.at[FROM + DIGITS] != '-' ||
        memcmp(value.at + FROM, nothing, DIGITS) == 0) {
        return (struct becalm_text){NULL, 0};
    }
    return (struct becalm_text){value.at + FROM, DIGITS};
}

struct becalm_text join_id(enum join_field field, struct becalm_text value)
{
    switch (field) {
    case JOIN_TRACEPARENT:
        return trace_of(value);
    case JOIN_B3: /* "0" alone says only that nothing is sampled */
        value = up_to(value, '-');
        return value.length < 16 ? (struct becalm_text){NULL, 0} : value;
    case JOIN_CLOUD_TRACE:
        return up_to(value, '/');
    case JOIN_REQUEST_ID:
        return value;
    }
    BECALM_UNREACHABLE();
}
