/* SPDX-License-Identifier: MIT */
/* Stands in for libyaml on a machine that has none: its "YAML" is the output of record.c on another machine, an event
 * per line. Any other text is a plain scalar, as the values of --set are. Only the functions that src/policy/yaml.c
 * uses are here. */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

static const char recorded[] = "recorded\n";

int yaml_parser_initialize(yaml_parser_t *parser)
{
    memset(parser, 0, sizeof *parser);
    return 1;
}

void yaml_parser_delete(yaml_parser_t *parser)
{
    memset(parser, 0, sizeof *parser);
}

void yaml_parser_set_encoding(yaml_parser_t *parser, yaml_encoding_t encoding)
{
    parser->encoding = encoding;
}

void yaml_parser_set_input_string(yaml_parser_t *parser, const unsigned char *input, size_t size)
{
    parser->input.string.current = input;
    parser->input.string.end = input + size;
}

static size_t bytes_left(const yaml_parser_t *parser)
{
    return (size_t)(parser->input.string.end - parser->input.string.current);
}

static int number_read(yaml_parser_t *parser)
{
    int number = 0;
    const unsigned char *at = parser->input.string.current;
    for (; at < parser->input.string.end && *at >= '0' && *at <= '9'; at++) {
        number = number * 10 + (*at - '0');
    }
    parser->input.string.current = at + 1; /* behind the blank or the end of the line */
    return number;
}

static unsigned digit(unsigned char hex)
{
    return hex >= 'a' ? hex - 'a' + 10u : hex - (unsigned)'0';
}

static int scalar_read(yaml_parser_t *parser, yaml_event_t *event)
{
    const unsigned char *at = parser->input.string.current;
    const unsigned char *end = memchr(at, '\n', bytes_left(parser));
    size_t length = end == NULL ? 0 : (size_t)(end - at) / 2;
    yaml_char_t *value = malloc(length + 1);
    if (end == NULL || value == NULL) {
        free(value);
        return 0;
    }
    for (size_t i = 0; i < length; i++) {
        value[i] = (yaml_char_t)(digit(at[2 * i]) << 4 | digit(at[2 * i + 1]));
    }
    value[length] = 0;
    event->data.scalar.value = value;
    event->data.scalar.length = length;
    parser->input.string.current = end + 1;
    return 1;
}

/* All of a text that was not recorded. */
static int plain_read(yaml_parser_t *parser, yaml_event_t *event)
{
    size_t length = bytes_left(parser);
    yaml_char_t *value = calloc(1, length + 1);
    if (value == NULL) {
        return 0;
    }
    memcpy(value, parser->input.string.current, length);
    event->type = YAML_SCALAR_EVENT;
    event->data.scalar.style = YAML_PLAIN_SCALAR_STYLE;
    event->data.scalar.value = value;
    event->data.scalar.length = length;
    parser->input.string.current = parser->input.string.end;
    return 1;
}

int yaml_parser_parse(yaml_parser_t *parser, yaml_event_t *event)
{
    memset(event, 0, sizeof *event);
    if (bytes_left(parser) == 0) {
        event->type = YAML_STREAM_END_EVENT;
        return 1;
    }
    if (!parser->stream_start_produced) {
        parser->stream_start_produced = 1;
        if (bytes_left(parser) < sizeof recorded ||
            memcmp(parser->input.string.current, recorded, sizeof recorded - 1) != 0) {
            return plain_read(parser, event);
        }
        parser->input.string.current += sizeof recorded - 1;
    }
    event->type = (yaml_event_type_t)number_read(parser);
    if (event->type != YAML_SCALAR_EVENT) {
        return 1;
    }
    event->data.scalar.style = (yaml_scalar_style_t)number_read(parser);
    return scalar_read(parser, event);
}

void yaml_event_delete(yaml_event_t *event)
{
    if (event->type == YAML_SCALAR_EVENT) {
        free(event->data.scalar.value);
    }
    memset(event, 0, sizeof *event);
}
