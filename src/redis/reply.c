/* SPDX-License-Identifier: MIT */
#include "reply.h"

#include <hiredis.h>
#include <string.h>

/* hiredis calls these functions for each value that it reads. The object is the reader's one reply; returning NULL
 * makes hiredis give up. */

static bool is_root(const redisReadTask *task)
{
    return task->parent == NULL;
}

/* Values of a list inside a list are read and not kept. */
static bool is_buried(const redisReadTask *task)
{
    return task->parent != NULL && task->parent->parent != NULL;
}

/* Its place; NULL: there is none. */
static struct reply_item *place(const redisReadTask *task)
{
    struct reply_reader *r = task->privdata;
    struct reply *reply = &r->reply;
    if (is_root(task)) {
        reply->text[0] = 0;
        reply->count = 1;
        r->texts.length = r->texts.from = 0;
        return &reply->item[0];
    }
    if (task->idx < 0 || (uint32_t)task->idx >= REPLY_ITEMS) {
        return NULL;
    }
    reply->count = (uint32_t)task->idx + 1;
    return &reply->item[task->idx];
}

/* Takes it down; true if it is the whole reply. */
static void *put(const redisReadTask *task, enum reply_kind kind, long long number)
{
    struct reply_reader *r = task->privdata;
    struct reply_item *item = is_buried(task) ? NULL : place(task);
    if (item != NULL) {
        *item = (struct reply_item){.kind = kind, .number = number};
    }
    if (is_root(task)) {
        r->reply.kind = kind;
    }
    return is_buried(task) || item != NULL ? r : NULL;
}

/* Texts are stored one after the other; their final addresses are known when all have been read. */
static void *make_text(const redisReadTask *task, char *text, size_t length)
{
    struct reply_reader *r = task->privdata;
    enum reply_kind kind = task->type == REDIS_REPLY_ERROR ? REPLY_ERROR : REPLY_WORD;
    if (put(task, kind, -1) == NULL || is_buried(task)) {
        return is_buried(task) ? r : NULL;
    }
    if (is_root(task)) {
        size_t kept = length < REPLY_TEXT - 1 ? length : REPLY_TEXT - 1;
        memcpy(r->reply.text, text, kept);
        r->reply.text[kept] = 0;
    }
    r->reply.item[is_root(task) ? 0 : task->idx].length = length;
    r->no_memory = !bytes_add(&r->texts, text, length);
    return r->no_memory ? NULL : r;
}

static void *list_begin(const redisReadTask *task, size_t length)
{
    struct reply_reader *r = task->privdata;
    if (length > REPLY_ITEMS || put(task, is_root(task) ? REPLY_LIST : REPLY_NOTHING, -1) == NULL) {
        return NULL;
    }
    r->reply.count = is_root(task) ? 0 : r->reply.count;
    return r;
}

#if HIREDIS_MAJOR >= 1
static void *make_list(const redisReadTask *task, size_t length)
{
    return list_begin(task, length);
}
#else
static void *make_list(const redisReadTask *task, int length)
{
    return length < 0 ? NULL : list_begin(task, (size_t)length);
}
#endif

static void *make_number(const redisReadTask *task, long long number)
{
    return put(task, REPLY_NUMBER, number);
}

static void *make_nothing(const redisReadTask *task)
{
    return put(task, REPLY_NOTHING, -1);
}

static void leave(void *object)
{
    (void)object; /* the reply is part of its reader */
}

static redisReplyObjectFunctions functions = {
    .createString = make_text,
    .createArray = make_list,
    .createInteger = make_number,
    .createNil = make_nothing,
    .freeObject = leave,
};

bool reply_open(struct reply_reader *r, size_t most)
{
    memset(r, 0, sizeof *r);
    r->most = most == 0 ? REPLY_BYTES : most;
    r->reader = redisReaderCreateWithFunctions(&functions);
    if (r->reader != NULL) {
        r->reader->privdata = r;
    }
    return r->reader != NULL;
}

void reply_close(struct reply_reader *r)
{
    if (r->reader != NULL) {
        redisReaderFree(r->reader);
    }
    r->reader = NULL;
    bytes_free(&r->texts);
}

bool reply_feed(struct reply_reader *r, const char *bytes, size_t count)
{
    r->unread += count;
    return redisReaderFeed(r->reader, bytes, count) == REDIS_OK;
}

static void texts_place(struct reply_reader *r)
{
    const char *at = bytes_at(&r->texts);
    for (uint32_t i = 0; i < r->reply.count; i++) {
        struct reply_item *item = &r->reply.item[i];
        if (item->kind == REPLY_WORD || item->kind == REPLY_ERROR) {
            item->text = at;
            at += item->length;
        }
    }
}

enum reply_next reply_next(struct reply_reader *r)
{
    void *object = NULL;
    if (redisReaderGetReply(r->reader, &object) != REDIS_OK) {
        return REPLY_BROKEN;
    }
    if (object != NULL) {
        r->unread = 0;
        texts_place(r);
        return REPLY_THERE;
    }
    return r->unread > r->most ? REPLY_BROKEN : REPLY_NONE;
}

bool reply_says(const struct reply_item *item, const char *text)
{
    return item->text != NULL && item->length == strlen(text) && memcmp(item->text, text, item->length) == 0;
}
