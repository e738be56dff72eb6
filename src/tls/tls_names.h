/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TLS_TLS_NAMES_H
#define BECALM_TLS_TLS_NAMES_H

/* The names that a certificate is for. */

#include <becalm/http.h>

struct x509_st; /* OpenSSL's X509 */

enum tls_name_kind {
    TLS_NAME_URI, /* an alternative name */
    TLS_NAME_DNS, /* another */
    TLS_NAME_COMMON
};

/* Calls `each` for the alternative names in the certificate's order, and for the common name if `each` was called for
 * none of `beside` (bits by kind); until it says true. Returns whether it has. */
typedef bool tls_name_fits(void *data, enum tls_name_kind, struct becalm_text name);
bool tls_names_find(const struct x509_st *, unsigned beside, tls_name_fits *each, void *data);

#endif
