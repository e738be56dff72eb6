/* SPDX-License-Identifier: MIT */
#include "tls_names.h"

#include "libssl/libssl.h"

static struct becalm_text text_of(const ASN1_STRING *string)
{
    return (struct becalm_text){(const char *)ASN1_STRING_get0_data(string), (size_t)ASN1_STRING_length(string)};
}

bool tls_names_find(const X509 *x509, unsigned beside, tls_name_fits *each, void *data)
{
    bool found = false;
    unsigned seen = 0;
    GENERAL_NAMES *names = X509_get_ext_d2i(x509, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; names != NULL && !found && i < sk_GENERAL_NAME_num(names); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS || name->type == GEN_URI) {
            enum tls_name_kind kind = name->type == GEN_DNS ? TLS_NAME_DNS : TLS_NAME_URI;
            seen |= 1u << kind;
            found = each(data, kind, text_of(name->d.ia5));
        }
    }
    GENERAL_NAMES_free(names);
    const X509_NAME *subject = X509_get_subject_name(x509);
    int index = found || (seen & beside) != 0 ? -1 : X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    return found || (index >= 0 && each(data, TLS_NAME_COMMON,
                                        text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, index)))));
}
