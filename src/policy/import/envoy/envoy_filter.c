/* SPDX-License-Identifier: MIT */
#include "envoy.h"
#include "policy/import/mesh.h"

#include <string.h>

bool envoy_filter_is(const struct object *object)
{
    return strcmp(object->kind, "EnvoyFilter") == 0 && strcmp(object->group, "networking.istio.io") == 0;
}

/* The service that a patch is for: the cluster's, or the virtual host's, which is host:port. NULL: all. */
static const struct yaml_node *place_of(const struct yaml_node *match)
{
    const struct yaml_node *cluster = source_get(match, "cluster");
    const struct yaml_node *host = source_get(source_get(source_get(match, "routeConfiguration"), "vhost"), "name");
    const struct yaml_node *found = source_get(cluster, "service");
    found = found != NULL ? found : source_get(cluster, "name");
    found = found != NULL ? found : host;
    return found != NULL && found->kind == YAML_SCALAR ? found : NULL;
}

static struct emit_target *target_of(struct source *s, const struct yaml_node *place)
{
    if (place == NULL) {
        return emit_defaults(s->emit);
    }
    const char *bar = strrchr(place->text, '|'); /* outbound|80||host */
    const char *host = bar == NULL ? place->text : bar + 1;
    const char *name = emit_text(s->emit, "%.*s", (int)strcspn(host, ":"), host);
    return emit_service(s->emit, name, source_where(s, &(struct from){place, "configPatches.match", NULL}));
}

static void patch_read(struct source *s, const struct yaml_node *item)
{
    const struct yaml_node *to = source_get(item, "applyTo");
    const struct yaml_node *match = source_get(item, "match");
    const struct from patch = {source_get(source_get(item, "patch"), "value"), "patch.value", NULL};
    const struct yaml_node *operation = source_get(source_get(item, "patch"), "operation");
    bool cluster = yaml_is(to, "CLUSTER");
    bool route = yaml_is(to, "HTTP_ROUTE") || yaml_is(to, "VIRTUAL_HOST") || yaml_is(to, "ROUTE_CONFIGURATION");
    const struct yaml_node *action =
        source_get(patch.node, "route") != NULL ? source_get(patch.node, "route") : patch.node;
    if (yaml_is(source_get(match, "context"), "SIDECAR_INBOUND")) {
        source_aside(s, NULL, &(struct from){item, "configPatches", NULL}, "it concerns incoming requests");
        return;
    }
    if (patch.node == NULL || (!cluster && !route) || yaml_is(operation, "REMOVE")) {
        source_aside(s, NULL, &(struct from){item, "configPatches", NULL},
                     emit_text(s->emit, "a patch of %.32s is not about retries, or not read",
                               to != NULL && to->kind == YAML_SCALAR ? to->text : "something"));
        return;
    }
    if (!source_is(s, &patch, YAML_MAPPING)) {
        return;
    }
    struct emit_target *target = target_of(s, place_of(match));
    if (route) {
        source_no_equal(s, target, &patch, "it changes routes that Istio makes; here it holds for the whole service");
    }
    envoy_piece_read(s, target, cluster ? patch.node : action);
}

void envoy_filter_read(struct source *s, const struct object *object)
{
    const struct from patches = {source_get(source_get(object->node, "spec"), "configPatches"), "configPatches", NULL};
    for (uint32_t i = 0; source_is(s, &patches, YAML_SEQUENCE) && i < patches.node->count; i++) {
        if (source_is(s, &(struct from){patches.node->item[i], "configPatches", NULL}, YAML_MAPPING)) {
            patch_read(s, patches.node->item[i]);
        }
    }
}
