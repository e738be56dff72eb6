/* SPDX-License-Identifier: MIT */
#include "reply.h"

#include <hiredis.h>
#include <string.h>

/* hiredis calls these with what it reads. The object is the one reply there is; NULL makes it give up. */

static struct reply *place(const redisReadTask *task)
{
    struct reply *reply = task->privdata;
    if (task->parent == NULL) {
        reply->kind = REPLY_WORD;
        reply->count = 0;
        reply->text[0] = 0;
    }
    return reply;
}

/* A number in the list, or -1 for what is none. */
static void *element(const redisReadTask *task, long long number)
{
    struct reply *reply = place(task);
    if (task->idx >= 0 && (uint32_t)task->idx < REPLY_NUMBERS) {
        reply->number[task->idx] = number;
        reply->count = (uint32_t)task->idx + 1;
    }
    return reply;
}

static void *make_text(const redisReadTask *task, char *text, size_t length)
{
    struct reply *reply = place(task);
    if (task->parent != NULL) {
        return element(task, -1);
    }
    size_t kept = length < REPLY_TEXT - 1 ? length : REPLY_TEXT - 1;
    reply->kind = task->type == REDIS_REPLY_ERROR ? REPLY_ERROR : REPLY_WORD;
    memcpy(reply->text, text, kept);
    reply->text[kept] = 0;
    return reply;
}

static void *list_begin(const redisReadTask *task, size_t length)
{
    struct reply *reply = place(task);
    if (task->parent != NULL || length > REPLY_NUMBERS) {
        return NULL;
    }
    reply->kind = REPLY_LIST;
    return reply;
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
    return task->parent == NULL ? (void *)place(task) : element(task, number);
}

static void *make_nothing(const redisReadTask *task)
{
    return task->parent == NULL ? (void *)place(task) : element(task, -1);
}

static void leave(void *object)
{
    (void)object; /* it is part of its reader */
}

static redisReplyObjectFunctions functions = {
    .createString = make_text,
    .createArray = make_list,
    .createInteger = make_number,
    .createNil = make_nothing,
    .freeObject = leave,
};

bool reply_open(struct reply_reader *r)
{
    r->unread = 0;
    r->reader = redisReaderCreateWithFunctions(&functions);
    if (r->reader != NULL) {
        r->reader->privdata = &r->reply;
    }
    return r->reader != NULL;
}

void reply_close(struct reply_reader *r)
{
    if (r->reader != NULL) {
        redisReaderFree(r->reader);
    }
    r->reader = NULL;
}

bool reply_feed(struct reply_reader *r, const char *bytes, size_t count)
{
    r->unread += count;
    return redisReaderFeed(r->reader, bytes, count) == REDIS_OK;
}

enum reply_next reply_next(struct reply_reader *r)
{
    void *object = NULL;
    if (redisReaderGetReply(r->reader, &object) != REDIS_OK) {
        return REPLY_BROKEN;
    }
    if (object != NULL) {
        r->unread = 0;
        return REPLY_THERE;
    }
    return r->unread > REPLY_BYTES ? REPLY_BROKEN : REPLY_NONE;
}
