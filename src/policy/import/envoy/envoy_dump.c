/* SPDX-License-Identifier: MIT */
#include "envoy.h"

#include <string.h>

/* The parts of a dump, and the keys of their items. Routes inside a listener are also among the static routes. So
 * listeners are read for routes only if the dump has no routes, and the bootstrap only if it has no listeners. */
static const struct part {
    const char *list;
    const char *state; /* a mapping around the item; NULL: none */
    const char *item;
} cluster_parts[] = {{"static_clusters", NULL, "cluster"},
                     {"dynamic_active_clusters", NULL, "cluster"},
                     {NULL, NULL, NULL}},
  route_parts[] = {{"static_route_configs", NULL, "route_config"},
                   {"dynamic_route_configs", NULL, "route_config"},
                   {NULL, NULL, NULL}},
  listener_parts[] = {{"static_listeners", NULL, "listener"},
                      {"dynamic_listeners", "active_state", "listener"},
                      {NULL, NULL, NULL}},
  endpoint_parts[] = {{"static_endpoint_configs", NULL, "endpoint_config"},
                      {"dynamic_endpoint_configs", NULL, "endpoint_config"},
                      {NULL, NULL, NULL}};

bool envoy_dump_is(const struct yaml_node *node)
{
    const struct yaml_node *configs = source_get(node, "configs");
    const struct yaml_node *first = configs != NULL && configs->kind == YAML_SEQUENCE && configs->count > 0
                                        ? source_get(configs->item[0], "@type")
                                        : NULL;
    return first != NULL && first->kind == YAML_SCALAR && strstr(first->text, "ConfigDump") != NULL;
}

/* Reads the lists of one kind of dump; false if there is none of it. */
static bool parts_read(struct envoy *in, const struct yaml_node *configs, const struct part *parts, unsigned depth)
{
    bool found = false;
    for (uint32_t i = 0; i < configs->count; i++) {
        for (const struct part *part = parts; part->list != NULL; part++) {
            const struct from list = {source_get(configs->item[i], part->list), part->list, NULL};
            found = found || list.node != NULL;
            for (uint32_t k = 0; list.node != NULL && source_is(in->s, &list, YAML_SEQUENCE) && k < list.node->count;
                 k++) {
                const struct yaml_node *around =
                    part->state == NULL ? list.node->item[k] : source_get(list.node->item[k], part->state);
                const struct yaml_node *item = source_get(around, part->item);
                if (item != NULL) {
                    envoy_anything_read(in, item, depth);
                }
            }
        }
    }
    return found;
}

void envoy_dump_read(struct envoy *in, const struct yaml_node *dump, unsigned depth)
{
    const struct yaml_node *configs = source_get(dump, "configs");
    bool clusters = parts_read(in, configs, cluster_parts, depth);
    (void)parts_read(in, configs, endpoint_parts, depth);
    bool routes = parts_read(in, configs, route_parts, depth) || parts_read(in, configs, listener_parts, depth);
    for (uint32_t i = 0; !clusters && !routes && i < configs->count; i++) {
        const struct yaml_node *bootstrap = source_get(configs->item[i], "bootstrap");
        if (bootstrap != NULL) {
            envoy_anything_read(in, bootstrap, depth);
        }
    }
}
