/* SPDX-License-Identifier: MIT */
/* Prints libyaml's events of standard input, for replay.c: after a first line that says so, a line per event: its
 * number, and a scalar's style and bytes. Positions are left out: they are for diagnostics, and these files have none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

static void event_print(const yaml_event_t *event)
{
    printf("%d", (int)event->type);
    if (event->type == YAML_SCALAR_EVENT) {
        printf(" %d ", (int)event->data.scalar.style);
        for (size_t i = 0; i < event->data.scalar.length; i++) {
            printf("%02x", event->data.scalar.value[i]);
        }
    }
    putchar('\n');
}

int main(void)
{
    yaml_parser_t parser;
    yaml_event_t event;
    yaml_event_type_t kind;
    if (!yaml_parser_initialize(&parser)) {
        return EXIT_FAILURE;
    }
    yaml_parser_set_input_file(&parser, stdin);
    puts("recorded");
    do {
        if (!yaml_parser_parse(&parser, &event)) {
            return EXIT_FAILURE;
        }
        kind = event.type;
        event_print(&event);
        yaml_event_delete(&event);
    } while (kind != YAML_STREAM_END_EVENT);
    yaml_parser_delete(&parser);
    return EXIT_SUCCESS;
}
