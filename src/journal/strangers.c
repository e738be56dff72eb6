/* SPDX-License-Identifier: MIT */
#include "strangers.h"

#include "http/text_internal.h"

#include <string.h>

void strangers_init(struct strangers *strangers)
{
    memset(strangers, 0, sizeof *strangers);
    pthread_mutex_init(&strangers->lock, NULL);
}

void strangers_free(struct strangers *strangers)
{
    pthread_mutex_destroy(&strangers->lock);
}

static enum stranger_news note(struct strangers *strangers, const char *host)
{
    for (uint32_t i = 0; i < strangers->count; i++) {
        if (strcmp(strangers->list[i].host, host) == 0) {
            strangers->list[i].requests++;
            return STRANGER_KNOWN;
        }
    }
    if (strangers->count == STRANGERS) {
        bool told = strangers->more;
        strangers->more = true;
        return told ? STRANGER_KNOWN : STRANGER_TOO_MANY;
    }
    struct stranger *fresh = &strangers->list[strangers->count++];
    memcpy(fresh->host, host, sizeof fresh->host);
    fresh->requests = 1;
    return STRANGER_NEW;
}

enum stranger_news strangers_note(struct strangers *strangers, struct becalm_text host)
{
    char name[STRANGERS_NAME_MAX] = "";
    for (size_t i = 0; i < host.length && i < sizeof name - 1; i++) {
        name[i] = to_lower(host.at[i]);
    }
    pthread_mutex_lock(&strangers->lock);
    enum stranger_news news = note(strangers, name);
    pthread_mutex_unlock(&strangers->lock);
    return news;
}

void strangers_forget(struct strangers *strangers)
{
    pthread_mutex_lock(&strangers->lock);
    strangers->count = 0;
    strangers->more = false;
    pthread_mutex_unlock(&strangers->lock);
}

uint32_t strangers_read(struct strangers *strangers, struct stranger list[STRANGERS])
{
    pthread_mutex_lock(&strangers->lock);
    uint32_t count = strangers->count;
    memcpy(list, strangers->list, count * sizeof *list);
    pthread_mutex_unlock(&strangers->lock);
    return count;
}
