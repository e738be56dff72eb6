/* SPDX-License-Identifier: MIT */
/* A request to the admin address, up to the point where a page is made: peer, path and parameters. The first byte says
 * whether the address needs a token, and the kind of the other bytes. */
#include "admin/admin_internal.h"
#include "http/text_internal.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parameters(struct becalm_text text)
{
    char small[8];
    char *large = malloc(text.length + 1); /* just as much as it may take, for AddressSanitizer */
    BECALM_ASSERT(large != NULL);
    if (admin_unescape(text, small, sizeof small)) {
        BECALM_ASSERT(admin_unescape(text, large, text.length + 1) && strcmp(small, large) == 0);
        BECALM_ASSERT(strlen(small) <= text.length);
    }
    if (admin_query(text, "a", large, text.length + 1)) {
        BECALM_ASSERT(strlen(large) + 2 <= text.length);
    }
    free(large);
}

/* Pages that need no token: the two that say whether the process lives, and the dashboard without its data. */
static bool is_public(struct becalm_text path)
{
    return text_is(path, "/healthz") || text_is(path, "/readyz") || text_is(path, "/") ||
           (path.length > 8 && memcmp(path.at, "/assets/", 8) == 0);
}

static void check_request(const struct admin *admin, const struct head *head)
{
    static const union address_socket local = {.v4 = {.sin_family = AF_INET}};
    struct admin_answer answer = {.page = {.bytes_max = ADMIN_PAGE_MAX}};
    struct admin_request request = {
        .head = head,
        .method = head_method(head),
        .path = head_target(head),
        .local = &local,
    };
    bool passes = admin_route_check(admin, &request, &answer);
    BECALM_ASSERT(passes ? answer.page.length == 0 : answer.status >= 401 && answer.status <= 415);
    BECALM_ASSERT(answer.ask_token == (!passes && answer.status == 401));
    bool needs_token = admin->token != NULL && (answer.is_known || !is_public(request.path));
    BECALM_ASSERT(!passes || !needs_token || head_has(head, FIELD_AUTHORIZATION));
    buffer_free(&answer.page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct head head;
    static char secret[] = "ab";
    struct admin admin = {.token = size > 0 && (data[0] & 1) != 0 ? secret : NULL};
    struct h1_limits limits = {.head_bytes = ADMIN_HEAD_MAX};
    if (size < 2) {
        return 0;
    }
    char *bytes = malloc(size - 1);
    BECALM_ASSERT(bytes != NULL);
    memcpy(bytes, data + 1, size - 1);
    if ((data[0] & 2) != 0) {
        check_parameters((struct becalm_text){bytes, size - 1});
    } else {
        size_t end = h1_head_end(bytes, size - 1, 0);
        if (end > 0 && h1_parse_request(bytes, end, &limits, &head).kind == H1_OK) {
            check_request(&admin, &head);
        }
    }
    free(bytes);
    return 0;
}
