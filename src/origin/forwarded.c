/* SPDX-License-Identifier: MIT */
#include "forwarded.h"

#include <arpa/inet.h>

#define ELEMENT_ROOM 128u /* for one element of Forwarded, without its host */

/* The digits of each byte, and a dot behind them. */
/* clang-format off */
#define OCTET(n) \
    {(char)('0' + ((n) >= 100 ? (n) / 100 : (n) >= 10 ? (n) / 10 : (n))), \
     (char)((n) >= 100 ? '0' + (n) / 10 % 10 : (n) >= 10 ? '0' + (n) % 10 : '.'), \
     (char)((n) >= 100 ? '0' + (n) % 10 : '.'), '.'}
#define OCTETS_4(n)  OCTET(n), OCTET((n) + 1), OCTET((n) + 2), OCTET((n) + 3)
#define OCTETS_16(n) OCTETS_4(n), OCTETS_4((n) + 4), OCTETS_4((n) + 8), OCTETS_4((n) + 12)
#define OCTETS_64(n) OCTETS_16(n), OCTETS_16((n) + 16), OCTETS_16((n) + 32), OCTETS_16((n) + 48)
static const char octets[256][4] = {OCTETS_64(0), OCTETS_64(64), OCTETS_64(128), OCTETS_64(192)};
/* clang-format on */

/* Writes an octet with its dot. Always writes four bytes, even if fewer are needed. */
static inline char *put_octet(char *at, unsigned octet)
{
    memcpy(at, octets[octet], sizeof octets[octet]);
    return at + 2 + (octet >= 10) + (octet >= 100);
}

static inline char *put_constant(char *at, const char *text, size_t length)
{
    memcpy(at, text, length);
    return at + length;
}
#define PUT(at, text) put_constant(at, text, sizeof(text) - 1)

static bool is_v4(const struct origin_ip *ip)
{
    uint64_t zero;
    uint32_t ones;
    memcpy(&zero, ip->bytes, sizeof zero);
    memcpy(&ones, ip->bytes + 8, sizeof ones);
    return zero == 0 && ones == htonl(0xffff);
}

/* The node as Forwarded has it; *address is the part of it that X-Forwarded-For has, absent for a Unix socket's. */
static char *put_node(char *at, const struct origin_ip *ip, struct becalm_text *address)
{
    static const struct origin_ip none;
    if (is_v4(ip)) {
        address->at = at;
        at = put_octet(at, ip->bytes[12]);
        at = put_octet(at, ip->bytes[13]);
        at = put_octet(at, ip->bytes[14]);
        at = put_octet(at, ip->bytes[15]) - 1;
        address->length = (size_t)(at - address->at);
        return at;
    }
    if (memcmp(ip, &none, sizeof none) == 0) {
        *address = (struct becalm_text){0};
        return PUT(at, "unknown");
    }
    at = PUT(at, "\"[");
    (void)inet_ntop(AF_INET6, ip->bytes, at, INET6_ADDRSTRLEN);
    *address = (struct becalm_text){at, strlen(at)};
    return PUT(at + address->length, "]\"");
}

/* `for=192.0.2.1;host="shop.test";proto=http`: the authority has no quotation marks, since it was found to be one. */
static char *put_element(char *at, const struct origin *origin, struct becalm_text authority,
                         struct becalm_text *address)
{
    at = PUT(at, "for=");
    at = put_node(at, &origin->ip, address);
    if (authority.length > 0) {
        at = PUT(at, ";host=\"");
        memcpy(at, authority.at, authority.length);
        at += authority.length;
        *at++ = '"';
    }
    return origin->tls ? PUT(at, ";proto=https") : PUT(at, ";proto=http");
}

/* All lines of a field that the peer sent, as one list, with one more item behind. */
static void add_behind(struct draft *draft, const char *name, enum field_id id, struct becalm_text item)
{
    const struct head *head = draft->passed;
    struct text_sink *values = &draft->values;
    size_t from = values->length;
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->field[i].id == id && !head->field[i].hop && head->field[i].value_length > 0) {
            text_put(values, field_value(head, &head->field[i]));
            text_put_chars(values, item.length > 0 ? ", " : "");
        }
    }
    text_put(values, item);
    if (values->length > from) {
        draft_add_made(draft, name, from);
    }
}

struct parts {
    struct becalm_text element;
    struct becalm_text address;
    struct becalm_text proto;
    struct becalm_text authority;
};

/* The peer is trusted and says something of its own client. */
static __attribute__((noinline)) void add_to_said(struct draft *draft, enum becalm_forwarded which,
                                                  const struct parts *parts)
{
    const struct head *head = draft->passed;
    if (which != BECALM_FORWARDED_STANDARD) {
        draft->skip |= FIELD_BIT(FIELD_FORWARDED_FOR);
        add_behind(draft, "x-forwarded-for", FIELD_FORWARDED_FOR, parts->address);
        if (!head_has(head, FIELD_FORWARDED_PROTO)) {
            draft_add(draft, "x-forwarded-proto", parts->proto);
        }
        if (!head_has(head, FIELD_FORWARDED_HOST) && parts->authority.length > 0) {
            draft_add(draft, "x-forwarded-host", parts->authority);
        }
    }
    if (which != BECALM_FORWARDED_X) {
        draft->skip |= FIELD_BIT(FIELD_FORWARDED);
        add_behind(draft, "forwarded", FIELD_FORWARDED, parts->element);
    }
}

void forwarded_add(struct draft *draft, const struct origin *origin, enum becalm_forwarded which,
                   struct becalm_text authority)
{
    struct text_sink *values = &draft->values;
    struct parts parts = {.authority = authority, .proto = {"https", origin->tls ? 5 : 4}};
    if (!origin->trusted) {
        draft->skip |= FORWARDED_FIELDS;
    }
    if (which == BECALM_FORWARDED_OFF) {
        return;
    }
    if (values->size - values->length < authority.length + ELEMENT_ROOM) {
        values->full = true;
        return;
    }
    parts.element.at = values->at + values->length;
    char *end = put_element(values->at + values->length, origin, authority, &parts.address);
    parts.element.length = (size_t)(end - parts.element.at);
    values->length += parts.element.length;
    if (origin->trusted && (draft->passed->seen & FORWARDED_FIELDS) != 0) {
        add_to_said(draft, which, &parts);
        return;
    }
    if (which != BECALM_FORWARDED_STANDARD) {
        if (parts.address.length > 0) {
            draft_add(draft, "x-forwarded-for", parts.address);
        }
        draft_add(draft, "x-forwarded-proto", parts.proto);
        if (authority.length > 0) {
            draft_add(draft, "x-forwarded-host", authority);
        }
    }
    if (which != BECALM_FORWARDED_X) {
        draft_add(draft, "forwarded", parts.element);
    }
}

static uint16_t what_of(enum becalm_forwarded which, bool tls)
{
    return (uint16_t)((unsigned)which << 2 | (unsigned)tls << 1 | 1);
}

/* Writes them down, in place of others. */
static __attribute__((noinline)) void lines_make(struct forwarded_lines *lines, const struct origin *origin,
                                                 enum becalm_forwarded which, struct becalm_text authority)
{
    char room[FORWARDED_AUTHORITY + ELEMENT_ROOM];
    struct draft draft;
    struct origin stranger = *origin; /* nothing that a peer says is in them */
    struct text_sink out = {.at = lines->text, .size = sizeof lines->text};
    stranger.trusted = false;
    draft_begin(&draft, room, sizeof room);
    forwarded_add(&draft, &stranger, which, authority);
    for (uint32_t i = 0; i < draft.count; i++) {
        text_put(&out, draft.added[i].name);
        text_put_chars(&out, ": ");
        text_put(&out, draft.added[i].value);
        text_put_chars(&out, "\r\n");
    }
    BECALM_ASSERT(!out.full && !draft.values.full);
    lines->ip = origin->ip;
    lines->what = what_of(which, origin->tls);
    lines->length = (uint16_t)out.length;
    lines->authority_length = (uint32_t)authority.length;
    memcpy(lines->authority, authority.at == NULL ? "" : authority.at, authority.length);
}

static bool lines_are(const struct forwarded_lines *lines, const struct origin *origin, enum becalm_forwarded which,
                      struct becalm_text authority)
{
    return lines->what == what_of(which, origin->tls) && memcmp(&lines->ip, &origin->ip, sizeof lines->ip) == 0 &&
           lines->authority_length == authority.length &&
           (authority.length == 0 || memcmp(lines->authority, authority.at, authority.length) == 0);
}

void forwarded_add_kept(struct draft *draft, struct forwarded_kept *kept, const struct origin *origin,
                        enum becalm_forwarded which, struct becalm_text authority)
{
    bool said = origin->trusted && (draft->passed->seen & FORWARDED_FIELDS) != 0;
    if (which == BECALM_FORWARDED_OFF || said || authority.length > FORWARDED_AUTHORITY) {
        forwarded_add(draft, origin, which, authority);
        return;
    }
    const unsigned char *last = origin->ip.bytes + ORIGIN_IP_BYTES - 2;
    uint32_t place = (uint32_t)last[0] * 7 + last[1] + (uint32_t)authority.length;
    struct forwarded_lines *lines = &kept->lines[place % FORWARDED_LINES_KEPT];
    if (!lines_are(lines, origin, which, authority)) {
        lines_make(lines, origin, which, authority);
    }
    if (!origin->trusted) {
        draft->skip |= FORWARDED_FIELDS;
    }
    draft->lines[0] = (struct becalm_text){lines->text, lines->length};
}

void forwarded_add_prefix(struct draft *draft, const struct origin *origin, enum becalm_forwarded which,
                          struct becalm_text prefix)
{
    if (which != BECALM_FORWARDED_ALL && which != BECALM_FORWARDED_X) {
        return;
    }
    prefix.length -= prefix.at[prefix.length - 1] == '/';
    draft->skip |= FIELD_BIT(FIELD_FORWARDED_PREFIX);
    if (origin->trusted) {
        add_behind(draft, "x-forwarded-prefix", FIELD_FORWARDED_PREFIX, prefix);
    } else {
        draft_add(draft, "x-forwarded-prefix", prefix);
    }
}
