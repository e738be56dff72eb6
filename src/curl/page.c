/* SPDX-License-Identifier: MIT */
/* becalm_client_metrics(): the gateway's page, of a client. */
#include "client.h"

#include "meter/metrics.h"

#include <becalm/run.h>

#include <stdatomic.h>
#include <stdlib.h>

#define PAGE_MAX (64u * 1024 * 1024)
#define STORES   8u

/* Sites, each a row of its own. */
struct page {
    struct metrics_target *row;
    const struct meter **meter; /* SITE_LANES for each row */
    uint32_t count;
};

static uint32_t listed(const struct becalm_client *client)
{
    return client->routes == NULL ? client->target_count
                                  : client->target_count - 1; /* the last is for requests of no service */
}

static bool page_make(struct becalm_client *client, struct page *page)
{
    size_t count = 0;
    for (uint32_t i = 0; i < listed(client); i++) {
        for (const struct site *site = client->target[i].sites; site != NULL; site = site->next) {
            count++;
        }
    }
    page->row = calloc(count + 1, sizeof *page->row);
    page->meter = calloc(count * SITE_LANES + 1, sizeof *page->meter);
    return page->row != NULL && page->meter != NULL;
}

static void page_fill(const struct becalm_client *client, struct page *page)
{
    for (uint32_t i = 0; i < listed(client); i++) {
        const struct client_target *target = &client->target[i];
        for (const struct site *site = target->sites; site != NULL; site = site->next) {
            const struct meter **meter = &page->meter[page->count * SITE_LANES];
            for (uint32_t k = 0; k < SITE_LANES; k++) {
                meter[k] = &site->lane[k].meter;
            }
            page->row[page->count++] = (struct metrics_target){
                .service = target->service,
                .endpoint = target->endpoint,
                .operation = site->operation,
                .policy = &target->policy,
                .target = &target->target,
                .meters = meter,
                .meter_count = SITE_LANES,
            };
        }
    }
}

/* Calls of the target for requests of no service; a client that is built in code has none. With the mutex. */
static uint64_t unrouted_count(const struct becalm_client *client)
{
    uint64_t count = 0;
    const struct site *site = client->routes == NULL ? NULL : client->target[client->target_count - 1].sites;
    for (; site != NULL; site = site->next) {
        for (uint32_t k = 0; k < SITE_LANES; k++) {
            const struct meter *meter = &site->lane[k].meter;
            count += meter_arrivals(&meter, 1);
        }
    }
    return count;
}

char *becalm_client_metrics(struct becalm_client *client)
{
    struct buffer text = {.bytes_max = PAGE_MAX};
    struct page page = {0};
    if (client == NULL) {
        return NULL;
    }
    (void)pthread_mutex_lock(&client->mutex); /* sites may be added, and are never taken away */
    uint64_t unrouted = unrouted_count(client);
    bool made = page_make(client, &page);
    if (made) {
        page_fill(client, &page);
    }
    (void)pthread_mutex_unlock(&client->mutex);
    if (made) {
        struct metrics_redis redis[STORES];
        metrics_write(&text,
                      &(struct metrics){
                          .target = page.row,
                          .target_count = page.count,
                          .redis = redis,
                          .redis_count = client->store == NULL ? 0 : client_store_tell(client->store, redis, STORES),
                          .unrouted = unrouted,
                          .now = becalm_run_now(),
                      });
        buffer_bytes(&text, "", 1);
    }
    free(page.row);
    free(page.meter);
    if (!made || text.full) {
        buffer_free(&text);
        return NULL;
    }
    return text.at;
}
