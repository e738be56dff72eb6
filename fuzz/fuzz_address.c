/* SPDX-License-Identifier: MIT */
/* An address that was read and written is read again as the same address. */
#include "loop/address.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct address address;
    struct address again;
    char written[ADDRESS_TEXT_MAX];
    char *text = malloc(size + 1);
    BECALM_ASSERT(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (address_parse(text, &address)) {
        BECALM_ASSERT((address.kind == ADDRESS_NAME) == (address.name[0] != '\0'));
        if (address.kind != ADDRESS_NAME) {
            size_t length = address_write(&address.socket, written, sizeof written);
            BECALM_ASSERT(length == strlen(written));
            BECALM_ASSERT(address_parse(written, &again) && again.kind == address.kind && again.port == address.port);
        }
    }
    free(text);
    return 0;
}
