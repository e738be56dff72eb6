/* SPDX-License-Identifier: MIT */
#include "h2_session_internal.h"

#include <string.h>

static uint32_t least(uint32_t a, size_t b)
{
    return a < b ? a : (uint32_t)b;
}

/* Takes more of a part that is so long. True: all of it is here. */
static bool gather(struct h2_reader *reader, uint32_t whole, const uint8_t *bytes, size_t length, uint32_t *used)
{
    *used = least(whole - reader->have, length);
    memcpy(reader->part + reader->have, bytes, *used);
    reader->have = (uint8_t)(reader->have + *used);
    return reader->have == whole;
}

static uint32_t read_preface(struct h2_session *session, const uint8_t *bytes, size_t length)
{
    struct h2_reader *reader = &session->reader;
    uint32_t used;
    bool whole = gather(reader, H2_PART_MAX, bytes, length, &used);
    if (!h2_preface((const char *)reader->part, reader->have)) {
        h2_wrong(session, H2_PROTOCOL_ERROR);
    } else if (whole) {
        reader->have = 0;
        reader->reading = H2_READS_HEAD;
    }
    return used;
}

static uint32_t read_head(struct h2_session *session, const uint8_t *bytes, size_t length)
{
    struct h2_reader *reader = &session->reader;
    uint32_t used;
    if (!gather(reader, H2_FRAME_HEAD, bytes, length, &used)) {
        return used;
    }
    reader->have = 0;
    reader->frame = h2_frame_read(reader->part);
    reader->left = reader->frame.length;
    reader->padding = 0;
    h2_take_frame(session);
    return used;
}

/* Behind the padding's length, or where there is none. */
static void begin_inside(struct h2_session *session)
{
    struct h2_reader *reader = &session->reader;
    if (reader->frame.type == H2_DATA) {
        reader->reading = H2_READS_DATA;
    } else if ((reader->frame.flags & H2_FLAG_PRIORITY) == 0) {
        reader->reading = H2_READS_BLOCK;
    } else if (reader->left < 5) {
        h2_wrong(session, H2_FRAME_SIZE_ERROR);
    } else {
        reader->reading = H2_READS_DEPENDS;
    }
}

void h2_payload_begin(struct h2_session *session)
{
    if ((session->reader.frame.flags & H2_FLAG_PADDED) != 0) {
        session->reader.reading = H2_READS_PADDING;
    } else {
        begin_inside(session);
    }
}

static uint32_t read_padding(struct h2_session *session, const uint8_t *bytes)
{
    struct h2_reader *reader = &session->reader;
    if (reader->left == 0) {
        h2_wrong(session, H2_FRAME_SIZE_ERROR);
        return 0;
    }
    if (bytes == NULL) {
        return 0;
    }
    reader->padding = bytes[0];
    reader->left--;
    if (reader->padding > reader->left) {
        h2_wrong(session, H2_PROTOCOL_ERROR);
        return 1;
    }
    reader->left -= reader->padding;
    begin_inside(session);
    return 1;
}

/* A head says on which stream its own depends: that is out of use, but itself it can't be. */
static uint32_t read_depends(struct h2_session *session, const uint8_t *bytes, size_t length)
{
    struct h2_reader *reader = &session->reader;
    uint32_t used;
    if (gather(reader, 5, bytes, length, &used)) {
        reader->have = 0;
        reader->left -= 5;
        reader->reading = H2_READS_BLOCK;
        if (h2_number31(reader->part) == (uint32_t)reader->frame.id) {
            h2_wrong(session, H2_PROTOCOL_ERROR);
        }
    }
    return used;
}

/* The payload has been read: only padding may be left. */
static void end_payload(struct h2_reader *reader)
{
    reader->left = reader->padding;
    reader->padding = 0;
    reader->reading = reader->left > 0 ? H2_READS_REST : H2_READS_HEAD;
}

static uint32_t read_block(struct h2_session *session, const uint8_t *bytes, size_t length)
{
    struct h2_reader *reader = &session->reader;
    uint32_t used = least(reader->left, length);
    reader->left -= used;
    h2_take_head(session, bytes, used);
    if (reader->left == 0) {
        end_payload(reader);
    }
    return used;
}

static uint32_t read_data(struct h2_session *session, const uint8_t *bytes, size_t length)
{
    struct h2_reader *reader = &session->reader;
    uint32_t used = least(reader->left, length);
    reader->left -= used;
    if (used > 0) {
        h2_take_data(session, (const char *)bytes, used);
    }
    if (reader->left == 0 && h2_goes_on(session)) {
        h2_take_data_end(session);
        end_payload(reader);
    }
    return used;
}

static uint32_t read_part(struct h2_session *session, const uint8_t *bytes, size_t length)
{
    struct h2_reader *reader = &session->reader;
    uint32_t whole = h2_part_length(session);
    uint32_t used = 0;
    if (reader->left == 0) { /* SETTINGS without a parameter, or behind the last */
        reader->reading = H2_READS_HEAD;
        h2_take_settings_end(session);
    } else if (gather(reader, whole, bytes, length, &used)) {
        reader->have = 0;
        reader->left -= whole;
        reader->reading = reader->frame.type == H2_SETTINGS ? H2_READS_PART : H2_READS_REST;
        h2_take_part(session);
    }
    return used;
}

static uint32_t read_rest(struct h2_reader *reader, size_t length)
{
    uint32_t used = least(reader->left, length);
    reader->left -= used;
    if (reader->left == 0) {
        reader->reading = H2_READS_HEAD;
    }
    return used;
}

static uint32_t read_next(struct h2_session *session, const uint8_t *bytes, size_t length)
{
    struct h2_reader *reader = &session->reader;
    switch (reader->reading) {
    case H2_READS_PREFACE:
        return read_preface(session, bytes, length);
    case H2_READS_HEAD:
        return read_head(session, bytes, length);
    case H2_READS_PADDING:
        return read_padding(session, length == 0 ? NULL : bytes);
    case H2_READS_DEPENDS:
        return read_depends(session, bytes, length);
    case H2_READS_BLOCK:
        return read_block(session, bytes, length);
    case H2_READS_DATA:
        return read_data(session, bytes, length);
    case H2_READS_PART:
        return read_part(session, bytes, length);
    case H2_READS_REST:
        return read_rest(reader, length);
    }
    return 0;
}

/* Can it go on without another byte? */
static bool is_ripe(const struct h2_reader *reader)
{
    bool payload = reader->reading != H2_READS_PREFACE && reader->reading != H2_READS_HEAD;
    return payload && reader->left == 0;
}

void h2_receive(struct h2_session *session, const uint8_t *bytes, size_t length)
{
    while ((length > 0 || is_ripe(&session->reader)) && h2_goes_on(session)) {
        uint32_t used = read_next(session, bytes, length);
        bytes += used;
        length -= used;
    }
}
