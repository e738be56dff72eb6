/* SPDX-License-Identifier: MIT */
#include "value.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "http/path.h"

#define DURATION_MAX      (10u * 365u * 24u * 3600u * BECALM_S) /* ten years */
#define RATE_MAX          UINT64_C(1000000000000)               /* thousandths per second: 10^9 a second */
#define NAME_MAX_LENGTH   64u                                   /* value_nearest compares no more */
#define FRACTION_DIGITS   19u                                   /* 10^19 - 1 fits into 64 bits */
#define WRITTEN_DIGITS    9u                                    /* decimals that value_write_duration considers */
#define DURATION_TEXT_MAX 48u
#define PREFIX_MIN        4u /* the least letters that identify a name */

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first: parts of a duration go down. */
static const struct unit durations[] = {
    {"h", 3600 * BECALM_S}, {"m", 60 * BECALM_S}, {"s", BECALM_S}, {"ms", BECALM_MS}, {"us", BECALM_US}, {"ns", 1},
};
#define DURATIONS (sizeof durations / sizeof *durations)

/* KB is missing because it is ambiguous: 1000 or 1024. */
static const struct unit sizes[] = {
    {"", 1},
    {"B", 1},
    {"kB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", UINT64_C(1000000000000)},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
    {"TiB", UINT64_C(1) << 40},
};

/* Not isdigit and tolower, which depend on the locale. */
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* A number as it is written: 12.50 has the whole part 12, the fraction 5 and one place. */
struct number {
    uint64_t whole;
    uint64_t fraction;
    uint32_t places;
};

/* Reads the digits behind a dot; trailing zeros are ignored. */
static const char *fraction_read(const char *text, struct number *n)
{
    size_t length = 0;
    while (is_digit(text[length])) {
        length++;
    }
    size_t places = length;
    while (places > 0 && text[places - 1] == '0') {
        places--;
    }
    if (length == 0 || places > FRACTION_DIGITS) {
        return NULL;
    }
    for (size_t i = 0; i < places; i++) {
        n->fraction = n->fraction * 10 + (uint64_t)(text[i] - '0');
    }
    n->places = (uint32_t)places;
    return text + length;
}

/* Reads digits, or digits.digits, at the start of a text. Returns the text after it, or NULL if there is no number or
 * it is too large. A leading zero is refused: 010 is eight in some languages and ten in others. */
static const char *number_read(const char *text, struct number *n)
{
    *n = (struct number){0};
    if (!is_digit(text[0]) || (text[0] == '0' && is_digit(text[1]))) {
        return NULL;
    }
    for (; is_digit(*text); text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (__builtin_mul_overflow(n->whole, 10u, &n->whole) || __builtin_add_overflow(n->whole, digit, &n->whole)) {
            return NULL;
        }
    }
    return *text == '.' ? fraction_read(text + 1, n) : text;
}

/* n * factor, exactly, or false. Each decimal place must find its 2 and its 5 either in the fraction or in the factor:
 * this keeps everything in 64 bits. */
static bool number_times(struct number n, uint64_t factor, uint64_t *out)
{
    uint64_t whole;
    if (__builtin_mul_overflow(n.whole, factor, &whole)) {
        return false;
    }
    static const uint64_t primes[] = {2, 5};
    for (uint32_t place = 0; place < n.places; place++) {
        for (size_t i = 0; i < 2; i++) {
            if (n.fraction % primes[i] == 0) {
                n.fraction /= primes[i];
            } else if (factor % primes[i] == 0) {
                factor /= primes[i];
            } else {
                return false;
            }
        }
    }
    uint64_t part;
    return !__builtin_mul_overflow(n.fraction, factor, &part) && !__builtin_add_overflow(whole, part, out);
}

/* A number times `factor`, where the text ends with `unit`. */
static bool number_whole(const char *text, const char *unit, uint64_t factor, uint64_t *out)
{
    struct number n;
    const char *rest = number_read(text, &n);
    return rest != NULL && strcmp(rest, unit) == 0 && number_times(n, factor, out);
}

/* The duration unit at the start of a text, from the row `first` on; DURATIONS if there is none. */
static size_t duration_unit(const char *text, size_t first)
{
    size_t length = 0;
    while (is_letter(text[length])) {
        length++;
    }
    for (size_t i = first; i < DURATIONS; i++) {
        if (length == strlen(durations[i].name) && memcmp(text, durations[i].name, length) == 0) {
            return i;
        }
    }
    return DURATIONS;
}

bool value_duration(const char *text, becalm_ns *out)
{
    if (strcmp(text, "0") == 0) {
        *out = 0;
        return true;
    }
    becalm_ns sum = 0;
    size_t row = 0;
    do {
        struct number n;
        uint64_t part;
        text = number_read(text, &n);
        if (text == NULL) {
            return false;
        }
        row = duration_unit(text, row);
        if (row == DURATIONS || !number_times(n, durations[row].factor, &part) || part > DURATION_MAX) {
            return false;
        }
        sum += part; /* at most six parts of ten years each */
        text += strlen(durations[row].name);
        row++;
    } while (*text != 0);
    if (sum > DURATION_MAX) {
        return false;
    }
    *out = sum;
    return true;
}

bool value_percent(const char *text, uint32_t *ppm)
{
    uint64_t value;
    if (!number_whole(text, "", 10000, &value) && !number_whole(text, "%", 10000, &value)) {
        return false;
    }
    if (value > 1000000) {
        return false;
    }
    *ppm = (uint32_t)value;
    return true;
}

bool value_size(const char *text, uint64_t *bytes)
{
    uint64_t value;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (number_whole(text, sizes[i].name, sizes[i].factor, &value)) {
            if (value > INT64_MAX) { /* UINT64_MAX means "no limit" and must not be written by accident */
                return false;
            }
            *bytes = value;
            return true;
        }
    }
    return false;
}

bool value_integer(const char *text, uint64_t *out)
{
    struct number n;
    const char *rest = strchr(text, '.') == NULL ? number_read(text, &n) : NULL;
    if (rest == NULL || *rest != 0) {
        return false;
    }
    *out = n.whole;
    return true;
}

bool value_decimal(const char *text, uint32_t scale, uint64_t *out)
{
    uint64_t value;
    if (!number_whole(text, "", scale, &value)) {
        return false;
    }
    *out = value;
    return true;
}

static bool same_word(const char *a, const char *b)
{
    while (*a != 0 && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

bool value_boolean(const char *text, bool *out)
{
    static const char *const words[][2] = {{"false", "true"}, {"off", "on"}, {"no", "yes"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        for (size_t truth = 0; truth < 2; truth++) {
            if (same_word(text, words[i][truth])) {
                *out = truth == 1;
                return true;
            }
        }
    }
    return false;
}

bool value_rate(const char *text, uint64_t *milli)
{
    static const struct unit units[] = {{"/s", 1}, {"/m", 60}, {"/h", 3600}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        uint64_t value;
        if (!number_whole(text, units[i].name, 1000, &value) || value > RATE_MAX * units[i].factor) {
            continue;
        }
        /* 100/m is no whole number of thousandths per second: rounded, but never to nothing. */
        uint64_t rounded = (value + units[i].factor / 2) / units[i].factor;
        if (rounded == 0 && value != 0) {
            return false;
        }
        *milli = rounded;
        return true;
    }
    return false;
}

/* A port, to the end of the text. 0 is allowed: a listener takes any free port. */
static bool is_port(const char *text)
{
    uint64_t port;
    return value_integer(text, &port) && port <= 65535;
}

/* A copy of [text, end) in `copy`, if it fits. */
static bool copy_until(const char *text, const char *end, char *copy, size_t size)
{
    size_t length = (size_t)(end - text);
    if (length >= size) {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = 0;
    return true;
}

/* A DNS name of `length` bytes; underscores are in use, if not in the RFCs. The last label decides whether this is an
 * IPv4 address: no top-level domain is a number. */
static bool is_host(const char *text, size_t length)
{
    char copy[256];
    size_t label = 0;
    bool digits = true;
    if (length == 0 || length > 253 || !copy_until(text, text + length, copy, sizeof copy)) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        char c = copy[i];
        if (c == '.') {
            if (label == 0 || copy[i - 1] == '-') {
                return false;
            }
            label = 0;
            digits = digits || i + 1 < length; /* a dot at the end starts no label */
            continue;
        }
        if ((!is_letter(c) && !is_digit(c) && c != '-' && c != '_') || (c == '-' && label == 0) || label == 63) {
            return false;
        }
        digits = digits && is_digit(c);
        label++;
    }
    if (copy[length - 1] == '-') {
        return false;
    }
    struct in_addr address;
    return !digits || inet_pton(AF_INET, copy, &address) == 1;
}

static bool is_unix_path(const char *path)
{
    size_t length = strlen(path);
    if (path[0] != '/' || length < 2 || length >= sizeof((struct sockaddr_un *)NULL)->sun_path) {
        return false;
    }
    for (const unsigned char *c = (const unsigned char *)path; *c != 0; c++) {
        if (*c < 0x20 || *c == 0x7f) {
            return false;
        }
    }
    return true;
}

bool value_address(const char *text)
{
    if (strncmp(text, "unix:", 5) == 0 && text[5] == '/') {
        return is_unix_path(text + 5);
    }
    if (text[0] == '[') {
        char copy[INET6_ADDRSTRLEN];
        struct in6_addr address;
        const char *end = strchr(text, ']');
        return end != NULL && end[1] == ':' && copy_until(text + 1, end, copy, sizeof copy) &&
               inet_pton(AF_INET6, copy, &address) == 1 && is_port(end + 2);
    }
    const char *colon = strchr(text, ':');
    return colon != NULL && is_host(text, (size_t)(colon - text)) && is_port(colon + 1);
}

bool value_address_of_host(const char *text)
{
    return value_address(text) && (strncmp(text, "unix:/", 6) == 0 || strcmp(strrchr(text, ':'), ":0") != 0);
}

bool value_address_is_loopback(const char *text)
{
    return strncmp(text, "127.", 4) == 0 || strncmp(text, "[::1]", 5) == 0 || strncmp(text, "unix:", 5) == 0;
}

bool value_address_is_name(const char *text)
{
    char copy[INET_ADDRSTRLEN];
    struct in_addr v4;
    if (!value_address(text) || text[0] == '[' || strncmp(text, "unix:/", 6) == 0) {
        return false;
    }
    return !copy_until(text, strchr(text, ':'), copy, sizeof copy) || inet_pton(AF_INET, copy, &v4) != 1;
}

/* A host with or without a port. */
static bool is_host_and_port(const char *text)
{
    char with_port[320];
    bool has_port = text[0] == '[' ? strstr(text, "]:") != NULL : strchr(text, ':') != NULL;
    size_t length = strlen(text);
    if (has_port || length + sizeof ":80" > sizeof with_port) {
        return value_address(text) && strncmp(text, "unix:/", 6) != 0;
    }
    memcpy(with_port, text, length);
    memcpy(with_port + length, ":80", sizeof ":80");
    return value_address(with_port);
}

bool value_match_host(const char *text)
{
    struct in6_addr v6;
    if (strcmp(text, "*") == 0 || inet_pton(AF_INET6, text, &v6) == 1) {
        return true;
    }
    return is_host_and_port(strncmp(text, "*.", 2) == 0 ? text + 2 : text);
}

bool value_https(const char *text)
{
    static const char scheme[] = "https://";
    return strncmp(text, scheme, sizeof scheme - 1) == 0 && is_host_and_port(text + sizeof scheme - 1);
}

static const char srv_scheme[] = "srv://";

const char *value_srv_domain(const char *text)
{
    const char *protocol = strchr(text, '.');
    const char *domain = protocol == NULL ? NULL : strchr(protocol + 1, '.');
    return domain == NULL ? NULL : domain + 1;
}

bool value_srv(const char *text)
{
    const char *name = text + sizeof srv_scheme - 1;
    if (strncmp(text, srv_scheme, sizeof srv_scheme - 1) != 0 || name[0] != '_' || !is_host(name, strlen(name))) {
        return false;
    }
    const char *domain = value_srv_domain(name);
    return domain != NULL && domain[0] != '\0' && strchr(name, '.')[1] == '_';
}

const char *value_redis_host(const char *text)
{
    static const char *const schemes[] = {"redis://", "rediss://", "redis+unix://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t length = strlen(schemes[i]);
        if (strncmp(text, schemes[i], length) == 0) {
            const char *at = strrchr(text + length, '@'); /* a password may have one too */
            return at == NULL ? text + length : at + 1;
        }
    }
    return NULL;
}

bool value_redis_has_password(const char *text)
{
    const char *host = value_redis_host(text);
    const char *login = strstr(text, "://");
    const char *colon = login == NULL ? NULL : strchr(login + 3, ':');
    return host != NULL && login + 3 != host && colon != NULL && colon + 2 < host;
}

/* "a:1,b,[::1]" */
static bool are_hosts(const char *from, const char *end)
{
    char copy[320];
    for (;;) {
        const char *comma = memchr(from, ',', (size_t)(end - from));
        if (!copy_until(from, comma == NULL ? end : comma, copy, sizeof copy) || !is_host_and_port(copy)) {
            return false;
        }
        if (comma == NULL) {
            return true;
        }
        from = comma + 1;
    }
}

bool value_redis(const char *text)
{
    static const char sentinel[] = "?sentinel=";
    char database[16];
    uint64_t number;
    const char *host = value_redis_host(text);
    if (host == NULL || text[strcspn(text, " \t\r\n\"")] != '\0') {
        return false;
    }
    if (strncmp(text, "redis+unix://", 13) == 0) {
        return text[13] == '/' && text[14] != 0;
    }
    const char *path = host + strcspn(host, "/?");
    const char *query = path + strcspn(path, "?");
    bool named = strncmp(query, sentinel, sizeof sentinel - 1) == 0 && query[sizeof sentinel - 1] != 0;
    return are_hosts(host, path) && (*query == 0 || named) &&
           (path == query || (copy_until(path + 1, query, database, sizeof database) &&
                              value_integer(database, &number) && number < 65536));
}

bool value_path(const char *text)
{
    char normal[BECALM__PATH_NORMAL_MAX];
    struct becalm__path path;
    size_t length = strlen(text);
    return text[0] == '/' && becalm__path_read((struct becalm_text){text, length}, &path) &&
           path.text.length == length && !path.dotted &&
           becalm__path_normalize(&path, normal).length <= BECALM__PATH_RULE_MAX;
}

bool value_method(const char *text)
{
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
    return length > 0 && text[length] == 0;
}

/* "header:NAME": the kind, and then a name as HTTP has them. */
static bool is_kind_of_name(const char *text, const char *kind)
{
    size_t begin = strlen(kind);
    if (strncmp(text, kind, begin) != 0) {
        return false;
    }
    size_t length = begin;
    while (is_letter(text[length]) || is_digit(text[length]) ||
           (text[length] != '\0' && strchr("!#$%&'*+-.^_`|~", text[length]) != NULL)) {
        length++;
    }
    return length > begin && text[length] == '\0';
}

bool value_key_scope(const char *text)
{
    static const char *const words[] = {"credentials", "authorization", "none"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i]) == 0) {
            return true;
        }
    }
    return is_kind_of_name(text, "header:") || is_kind_of_name(text, "cookie:");
}

bool value_client_key(const char *text)
{
    return is_kind_of_name(text, "header:") || strcmp(text, "certificate") == 0;
}

/* Printable characters without blanks. */
static bool is_word(const char *text)
{
    size_t length = 0;
    while (text[length] > ' ' && text[length] < 0x7f) {
        length++;
    }
    return length > 0 && text[length] == '\0';
}

bool value_peer_name(const char *text)
{
    const char *colon = strchr(text, ':');
    size_t kind = colon == NULL ? 0 : (size_t)(colon - text);
    if (kind == 2 && strncmp(text, "cn", 2) == 0) {
        return text[3] != '\0' && strlen(text) <= VALUE_PEER_NAME_MAX;
    }
    if (!is_word(text) || kind == 0 || strlen(text) > VALUE_PEER_NAME_MAX) {
        return false;
    }
    if (kind == 3 && strncmp(text, "dns", 3) == 0) {
        const char *name = strncmp(text + 4, "*.", 2) == 0 ? text + 6 : text + 4;
        return name[0] != '\0' && strchr(name, '*') == NULL;
    }
    const char *star = strchr(text, '*');
    bool fits = star == NULL || (star[1] == '\0' && star[-1] == '/' && star - colon > 4);
    return strncmp(colon, "://", 3) == 0 && colon[3] != '\0' && fits;
}

bool value_upgrade(const char *text)
{
    static const char *const http[] = {"h2c", "h2", "h3", "http"};
    size_t length = 0;
    size_t slashes = 0;
    while (is_letter(text[length]) || is_digit(text[length]) ||
           (text[length] != '\0' && strchr("!#$%&'*+-.^_`|~/", text[length]) != NULL)) {
        slashes += text[length] == '/';
        length++;
    }
    size_t name = strcspn(text, "/");
    for (size_t i = 0; i < sizeof http / sizeof *http; i++) {
        if (name == strlen(http[i]) && strncasecmp(text, http[i], name) == 0) {
            return false;
        }
    }
    return name > 0 && text[length] == '\0' && slashes <= 1 && text[length - 1] != '/';
}

bool value_cidr(const char *text)
{
    char copy[INET6_ADDRSTRLEN];
    struct in_addr v4;
    struct in6_addr v6;
    const char *slash = strchr(text, '/');
    const char *end = slash == NULL ? text + strlen(text) : slash;
    if (!copy_until(text, end, copy, sizeof copy)) {
        return false;
    }
    uint64_t bits = 0;
    if (slash != NULL && !value_integer(slash + 1, &bits)) {
        return false;
    }
    if (inet_pton(AF_INET, copy, &v4) == 1) {
        return bits <= 32;
    }
    return inet_pton(AF_INET6, copy, &v6) == 1 && bits <= 128;
}

#define STATUS_MIN 100u
#define STATUS_MAX 599u

static bool status_in(const uint64_t set[VALUE_STATUS_WORDS], uint32_t status)
{
    return (set[status / 64] >> status % 64 & 1) != 0;
}

bool value_statuses(const char *text, uint64_t set[VALUE_STATUS_WORDS])
{
    char copy[4];
    uint64_t low;
    uint64_t high;
    const char *dash = strchr(text, '-');
    if (strlen(text) == 3 && strcmp(text + 1, "xx") == 0 && text[0] >= '1' && text[0] <= '5') {
        low = (uint64_t)(text[0] - '0') * 100;
        high = low + 99;
    } else if (dash != NULL) {
        if (!copy_until(text, dash, copy, sizeof copy) || !value_integer(copy, &low) ||
            !value_integer(dash + 1, &high)) {
            return false;
        }
    } else if (value_integer(text, &low)) {
        high = low;
    } else {
        return false;
    }
    if (low < STATUS_MIN || high > STATUS_MAX || low > high) {
        return false;
    }
    for (uint64_t status = low; status <= high; status++) {
        set[status / 64] |= UINT64_C(1) << status % 64;
    }
    return true;
}

size_t value_write_statuses(const uint64_t set[VALUE_STATUS_WORDS], char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t low = STATUS_MIN; low <= STATUS_MAX && used < size; low++) {
        uint32_t high = low;
        if (!status_in(set, low)) {
            continue;
        }
        while (high < STATUS_MAX && status_in(set, high + 1)) {
            high++;
        }
        int n = low == high ? snprintf(text + used, size - used, "%s%u", used == 0 ? "" : ", ", low)
                            : snprintf(text + used, size - used, "%s%u-%u", used == 0 ? "" : ", ", low, high);
        used += n > 0 ? (size_t)n : 0;
        low = high;
    }
    return used < size ? used : size - 1;
}

/* The digits of a number at text[at]; returns where they end. */
static size_t digits_write(char *text, size_t at, uint64_t n)
{
    char reversed[20];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    while (count > 0) {
        text[at++] = reversed[--count];
    }
    return at;
}

/* `duration` in one unit, if that is exact with few decimals and not below 1 of it. Returns the length, or 0. */
static size_t duration_write_in(becalm_ns duration, const struct unit *unit, char *text, bool *fraction)
{
    if (duration < unit->factor) {
        return 0;
    }
    size_t at = digits_write(text, 0, duration / unit->factor);
    uint64_t rest = duration % unit->factor;
    *fraction = rest != 0;
    if (rest != 0) {
        text[at++] = '.';
    }
    for (uint32_t i = 0; rest != 0; i++) {
        if (i == WRITTEN_DIGITS) {
            return 0;
        }
        rest *= 10; /* below 3.6e13 */
        text[at++] = (char)('0' + rest / unit->factor);
        rest %= unit->factor;
    }
    size_t length = strlen(unit->name);
    memcpy(text + at, unit->name, length + 1);
    return at + length;
}

static size_t text_put(const char *from, char *text, size_t size)
{
    size_t length = strlen(from);
    if (size == 0) {
        return 0;
    }
    if (length >= size) {
        length = size - 1;
    }
    memcpy(text, from, length);
    text[length] = 0;
    return length;
}

size_t value_write_duration(becalm_ns duration, char *text, size_t size)
{
    if (duration == 0) {
        return text_put("0", text, size);
    }
    if (duration == BECALM_NEVER) {
        return text_put("never", text, size);
    }
    char best[DURATION_TEXT_MAX];
    size_t best_length = 0;
    bool best_fraction = false;
    for (size_t i = 0; i < DURATIONS; i++) { /* nanoseconds are always exact, so there is a best one */
        char candidate[DURATION_TEXT_MAX];
        bool fraction = false;
        size_t length = duration_write_in(duration, &durations[i], candidate, &fraction);
        bool better = best_length == 0 || length < best_length || (length == best_length && best_fraction && !fraction);
        if (length > 0 && better) {
            memcpy(best, candidate, length + 1);
            best_length = length;
            best_fraction = fraction;
        }
    }
    return text_put(best, text, size);
}

/* Normalises a name: max_retries, max-retries and MaxRetries become the same. Returns the length, 0 if it is too long.
 */
static size_t name_fold(const char *name, char *folded)
{
    size_t length = 0;
    for (; *name != 0; name++) {
        if (*name == '-' || *name == '_') {
            continue;
        }
        if (length == NAME_MAX_LENGTH) {
            return 0;
        }
        folded[length++] = lower(*name);
    }
    return length;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Damerau-Levenshtein (optimal string alignment): insert, delete, replace, swap neighbours. */
static uint32_t name_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    uint32_t rows[3][NAME_MAX_LENGTH + 1];
    for (uint32_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (uint32_t i = 1; i <= a_length; i++) {
        uint32_t *row = rows[i % 3];
        const uint32_t *above = rows[(i + 2) % 3];
        const uint32_t *higher = rows[(i + 1) % 3]; /* two above */
        row[0] = i;
        for (uint32_t j = 1; j <= b_length; j++) {
            uint32_t replace = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = least(replace, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = least(row[j], higher[j - 2] + 1);
            }
        }
    }
    return rows[a_length % 3][b_length];
}

/* "retries" is closer to "retry" than their letters suggest. */
static bool is_plural(const char *one, size_t one_length, const char *many, size_t many_length)
{
    return one_length > 1 && one[one_length - 1] == 'y' && many_length == one_length + 2 &&
           memcmp(many, one, one_length - 1) == 0 && memcmp(many + one_length - 1, "ies", 3) == 0;
}

const char *value_nearest(const char *text, const char *const *names, size_t count)
{
    char wanted[NAME_MAX_LENGTH];
    const char *nearest = NULL;
    const char *longer_name = NULL;
    uint32_t nearest_distance = UINT32_MAX;
    size_t wanted_length = name_fold(text, wanted);
    if (wanted_length == 0) {
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        char name[NAME_MAX_LENGTH];
        size_t length = name_fold(names[i], name);
        size_t longer = length > wanted_length ? length : wanted_length;
        size_t shorter = length + wanted_length - longer;
        if (longer_name == NULL && wanted_length >= PREFIX_MIN && wanted_length == shorter &&
            memcmp(name, wanted, shorter) == 0) {
            longer_name = names[i];
        }
        if (longer - shorter >
            longer / 3) { /* too different; this also bounds the time for files with many wrong keys */
            continue;
        }
        uint32_t distance =
            is_plural(wanted, wanted_length, name, length) ? 1 : name_distance(wanted, wanted_length, name, length);
        bool begins = wanted_length == shorter && memcmp(name, wanted, shorter) == 0;
        if (distance <= longer / 3 && (distance < nearest_distance || (distance == nearest_distance && begins))) {
            nearest = names[i];
            nearest_distance = distance;
        }
    }
    return nearest != NULL ? nearest : longer_name;
}

void value_join_words(const char *const *words, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; words[i] != NULL && used < size; i++) {
        const char *between = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";
        int n = snprintf(text + used, size - used, "%s%s", between, words[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}
