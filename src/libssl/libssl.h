/* SPDX-License-Identifier: MIT */
#ifndef BECALM_LIBSSL_LIBSSL_H
#define BECALM_LIBSSL_LIBSSL_H

/* OpenSSL, loaded when a policy needs it (TLS with clients, hosts or Redis; idempotency keys), at the latest when one
 * of its functions is first called: its two libraries take 1.7 MB, which other gateways save. Include this header
 * instead of OpenSSL's. Each function keeps its name, and is called through a table. A function that is missing here is
 * linked as usual, and then tests/tools/test_needed.sh fails. */

#include <becalm/base.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* clang-format off */
#define LIBSSL_FUNCTIONS(X) \
    X(ASN1_STRING_get0_data) X(ASN1_STRING_length) X(ASN1_TIME_to_tm) X(BIO_clear_flags) X(BIO_free) X(BIO_get_data) \
    X(BIO_get_new_index) X(BIO_meth_new) X(BIO_meth_set_ctrl) X(BIO_meth_set_read) X(BIO_meth_set_write) X(BIO_new) \
    X(BIO_new_mem_buf) X(BIO_set_data) X(BIO_set_flags) X(BIO_set_init) X(BIO_up_ref) X(ERR_clear_error) \
    X(ERR_peek_error) X(ERR_peek_last_error) X(ERR_reason_error_string) X(EVP_CIPHER_CTX_ctrl) X(EVP_CIPHER_CTX_free) \
    X(EVP_CIPHER_CTX_new) X(EVP_CipherInit_ex) X(EVP_DecodeBlock) X(EVP_DecryptFinal_ex) X(EVP_DecryptInit_ex) \
    X(EVP_DecryptUpdate) X(EVP_Digest) X(EVP_DigestFinal_ex) X(EVP_DigestInit_ex) X(EVP_DigestUpdate) \
    X(EVP_EncryptFinal_ex) X(EVP_EncryptInit_ex) X(EVP_EncryptUpdate) X(EVP_MAC_CTX_set_params) X(EVP_MD_CTX_copy_ex) \
    X(EVP_MD_CTX_free) X(EVP_MD_CTX_new) X(EVP_PKEY_free) X(EVP_aes_256_cbc) X(EVP_aes_256_gcm) \
    X(EVP_sha256) X(GENERAL_NAMES_free) X(OPENSSL_cleanse) X(OPENSSL_sk_new_null) X(OPENSSL_sk_num) \
    X(OPENSSL_sk_pop_free) X(OPENSSL_sk_push) X(OPENSSL_sk_value) X(OSSL_PARAM_construct_end) \
    X(OSSL_PARAM_construct_octet_string) X(OSSL_PARAM_construct_utf8_string) X(PEM_read_bio_PrivateKey) \
    X(PEM_read_bio_X509) X(RAND_bytes) X(SSL_CTX_callback_ctrl) X(SSL_CTX_check_private_key) X(SSL_CTX_ctrl) \
    X(SSL_CTX_free) X(SSL_CTX_get_ex_data) X(SSL_CTX_load_verify_file) X(SSL_CTX_new) X(SSL_CTX_sess_set_new_cb) \
    X(SSL_CTX_set_alpn_select_cb) X(SSL_CTX_set_cert_store) X(SSL_CTX_set_cipher_list) X(SSL_CTX_set_client_CA_list) \
    X(SSL_CTX_set_ex_data) X(SSL_CTX_set_options) X(SSL_CTX_set_session_id_context) X(SSL_CTX_set_timeout) \
    X(SSL_CTX_set_tlsext_ticket_key_evp_cb) X(SSL_CTX_set_verify) X(SSL_CTX_use_PrivateKey) \
    X(SSL_CTX_use_certificate) X(SSL_SESSION_free) X(SSL_ctrl) X(SSL_do_handshake) X(SSL_free) \
    X(SSL_get0_alpn_selected) X(SSL_get0_param) X(SSL_get0_peer_certificate) X(SSL_get_SSL_CTX) X(SSL_get_error) \
    X(SSL_get_ex_data) X(SSL_get_servername) X(SSL_get_verify_result) X(SSL_has_pending) X(SSL_is_init_finished) \
    X(SSL_new) X(SSL_peek) X(SSL_pending) X(SSL_read) X(SSL_select_next_proto) X(SSL_session_reused) \
    X(SSL_set_SSL_CTX) X(SSL_set_accept_state) X(SSL_set_alpn_protos) X(SSL_set_bio) X(SSL_set_connect_state) \
    X(SSL_set_ex_data) X(SSL_set_session) X(SSL_set_shutdown) X(SSL_shutdown) X(SSL_write) X(TLS_client_method) \
    X(TLS_server_method) X(X509_NAME_ENTRY_get_data) X(X509_NAME_dup) X(X509_NAME_free) X(X509_NAME_get_entry) \
    X(X509_NAME_get_index_by_NID) X(X509_STORE_add_cert) X(X509_STORE_free) X(X509_STORE_new) \
    X(X509_VERIFY_PARAM_set1_host) X(X509_VERIFY_PARAM_set1_ip_asc) X(X509_VERIFY_PARAM_set_hostflags) X(X509_free) \
    X(X509_get0_notAfter) X(X509_get0_notBefore) X(X509_get_default_cert_file) X(X509_get_ext_d2i) \
    X(X509_get_subject_name) X(X509_verify_cert_error_string)
/* clang-format on */

/* Each function as its header declares it. */
struct libssl {
#define LIBSSL_MEMBER(name) __typeof__(&name) name;
    LIBSSL_FUNCTIONS(LIBSSL_MEMBER)
#undef LIBSSL_MEMBER
};

/* NULL: not loaded yet. */
extern BECALM_ATOMIC(const struct libssl *) libssl_loaded;

/* Loads OpenSSL, unless it is there already. NULL, or the reason why there is none: for the place that can say so. */
const char *libssl_find(void);

/* The same where nobody asked before: without OpenSSL the program ends with a sentence and 127, as if it had been
 * linked. */
const struct libssl *libssl_load(void);

static inline const struct libssl *libssl(void)
{
    /* Acquire: pairs with the release after the table was filled. */
    const struct libssl *loaded = atomic_load_explicit(&libssl_loaded, memory_order_acquire);
    return loaded != NULL ? loaded : libssl_load();
}

/* clang-format off */
#define ASN1_STRING_get0_data (libssl()->ASN1_STRING_get0_data)
#define ASN1_STRING_length (libssl()->ASN1_STRING_length)
#define ASN1_TIME_to_tm (libssl()->ASN1_TIME_to_tm)
#define BIO_clear_flags (libssl()->BIO_clear_flags)
#define BIO_free (libssl()->BIO_free)
#define BIO_get_data (libssl()->BIO_get_data)
#define BIO_get_new_index (libssl()->BIO_get_new_index)
#define BIO_meth_new (libssl()->BIO_meth_new)
#define BIO_meth_set_ctrl (libssl()->BIO_meth_set_ctrl)
#define BIO_meth_set_read (libssl()->BIO_meth_set_read)
#define BIO_meth_set_write (libssl()->BIO_meth_set_write)
#define BIO_new (libssl()->BIO_new)
#define BIO_new_mem_buf (libssl()->BIO_new_mem_buf)
#define BIO_set_data (libssl()->BIO_set_data)
#define BIO_set_flags (libssl()->BIO_set_flags)
#define BIO_set_init (libssl()->BIO_set_init)
#define BIO_up_ref (libssl()->BIO_up_ref)
#define ERR_clear_error (libssl()->ERR_clear_error)
#define ERR_peek_error (libssl()->ERR_peek_error)
#define ERR_peek_last_error (libssl()->ERR_peek_last_error)
#define ERR_reason_error_string (libssl()->ERR_reason_error_string)
#define EVP_CIPHER_CTX_ctrl (libssl()->EVP_CIPHER_CTX_ctrl)
#define EVP_CIPHER_CTX_free (libssl()->EVP_CIPHER_CTX_free)
#define EVP_CIPHER_CTX_new (libssl()->EVP_CIPHER_CTX_new)
#define EVP_CipherInit_ex (libssl()->EVP_CipherInit_ex)
#define EVP_DecodeBlock (libssl()->EVP_DecodeBlock)
#define EVP_DecryptFinal_ex (libssl()->EVP_DecryptFinal_ex)
#define EVP_DecryptInit_ex (libssl()->EVP_DecryptInit_ex)
#define EVP_DecryptUpdate (libssl()->EVP_DecryptUpdate)
#define EVP_Digest (libssl()->EVP_Digest)
#define EVP_DigestFinal_ex (libssl()->EVP_DigestFinal_ex)
#define EVP_DigestInit_ex (libssl()->EVP_DigestInit_ex)
#define EVP_DigestUpdate (libssl()->EVP_DigestUpdate)
#define EVP_EncryptFinal_ex (libssl()->EVP_EncryptFinal_ex)
#define EVP_EncryptInit_ex (libssl()->EVP_EncryptInit_ex)
#define EVP_EncryptUpdate (libssl()->EVP_EncryptUpdate)
#define EVP_MAC_CTX_set_params (libssl()->EVP_MAC_CTX_set_params)
#define EVP_MD_CTX_copy_ex (libssl()->EVP_MD_CTX_copy_ex)
#define EVP_MD_CTX_free (libssl()->EVP_MD_CTX_free)
#define EVP_MD_CTX_new (libssl()->EVP_MD_CTX_new)
#define EVP_PKEY_free (libssl()->EVP_PKEY_free)
#define EVP_aes_256_cbc (libssl()->EVP_aes_256_cbc)
#define EVP_aes_256_gcm (libssl()->EVP_aes_256_gcm)
#define EVP_sha256 (libssl()->EVP_sha256)
#define GENERAL_NAMES_free (libssl()->GENERAL_NAMES_free)
#define OPENSSL_cleanse (libssl()->OPENSSL_cleanse)
#define OPENSSL_sk_new_null (libssl()->OPENSSL_sk_new_null)
#define OPENSSL_sk_num (libssl()->OPENSSL_sk_num)
#define OPENSSL_sk_pop_free (libssl()->OPENSSL_sk_pop_free)
#define OPENSSL_sk_push (libssl()->OPENSSL_sk_push)
#define OPENSSL_sk_value (libssl()->OPENSSL_sk_value)
#define OSSL_PARAM_construct_end (libssl()->OSSL_PARAM_construct_end)
#define OSSL_PARAM_construct_octet_string (libssl()->OSSL_PARAM_construct_octet_string)
#define OSSL_PARAM_construct_utf8_string (libssl()->OSSL_PARAM_construct_utf8_string)
#define PEM_read_bio_PrivateKey (libssl()->PEM_read_bio_PrivateKey)
#define PEM_read_bio_X509 (libssl()->PEM_read_bio_X509)
#define RAND_bytes (libssl()->RAND_bytes)
#define SSL_CTX_callback_ctrl (libssl()->SSL_CTX_callback_ctrl)
#define SSL_CTX_check_private_key (libssl()->SSL_CTX_check_private_key)
#define SSL_CTX_ctrl (libssl()->SSL_CTX_ctrl)
#define SSL_CTX_free (libssl()->SSL_CTX_free)
#define SSL_CTX_get_ex_data (libssl()->SSL_CTX_get_ex_data)
#define SSL_CTX_load_verify_file (libssl()->SSL_CTX_load_verify_file)
#define SSL_CTX_new (libssl()->SSL_CTX_new)
#define SSL_CTX_sess_set_new_cb (libssl()->SSL_CTX_sess_set_new_cb)
#define SSL_CTX_set_alpn_select_cb (libssl()->SSL_CTX_set_alpn_select_cb)
#define SSL_CTX_set_cert_store (libssl()->SSL_CTX_set_cert_store)
#define SSL_CTX_set_cipher_list (libssl()->SSL_CTX_set_cipher_list)
#define SSL_CTX_set_client_CA_list (libssl()->SSL_CTX_set_client_CA_list)
#define SSL_CTX_set_ex_data (libssl()->SSL_CTX_set_ex_data)
#define SSL_CTX_set_options (libssl()->SSL_CTX_set_options)
#define SSL_CTX_set_session_id_context (libssl()->SSL_CTX_set_session_id_context)
#define SSL_CTX_set_timeout (libssl()->SSL_CTX_set_timeout)
#define SSL_CTX_set_tlsext_ticket_key_evp_cb (libssl()->SSL_CTX_set_tlsext_ticket_key_evp_cb)
#define SSL_CTX_set_verify (libssl()->SSL_CTX_set_verify)
#define SSL_CTX_use_PrivateKey (libssl()->SSL_CTX_use_PrivateKey)
#define SSL_CTX_use_certificate (libssl()->SSL_CTX_use_certificate)
#define SSL_SESSION_free (libssl()->SSL_SESSION_free)
#define SSL_ctrl (libssl()->SSL_ctrl)
#define SSL_do_handshake (libssl()->SSL_do_handshake)
#define SSL_free (libssl()->SSL_free)
#define SSL_get0_alpn_selected (libssl()->SSL_get0_alpn_selected)
#define SSL_get0_param (libssl()->SSL_get0_param)
#define SSL_get0_peer_certificate (libssl()->SSL_get0_peer_certificate)
#define SSL_get_SSL_CTX (libssl()->SSL_get_SSL_CTX)
#define SSL_get_error (libssl()->SSL_get_error)
#define SSL_get_ex_data (libssl()->SSL_get_ex_data)
#define SSL_get_servername (libssl()->SSL_get_servername)
#define SSL_get_verify_result (libssl()->SSL_get_verify_result)
#define SSL_has_pending (libssl()->SSL_has_pending)
#define SSL_is_init_finished (libssl()->SSL_is_init_finished)
#define SSL_new (libssl()->SSL_new)
#define SSL_peek (libssl()->SSL_peek)
#define SSL_pending (libssl()->SSL_pending)
#define SSL_read (libssl()->SSL_read)
#define SSL_select_next_proto (libssl()->SSL_select_next_proto)
#define SSL_session_reused (libssl()->SSL_session_reused)
#define SSL_set_SSL_CTX (libssl()->SSL_set_SSL_CTX)
#define SSL_set_accept_state (libssl()->SSL_set_accept_state)
#define SSL_set_alpn_protos (libssl()->SSL_set_alpn_protos)
#define SSL_set_bio (libssl()->SSL_set_bio)
#define SSL_set_connect_state (libssl()->SSL_set_connect_state)
#define SSL_set_ex_data (libssl()->SSL_set_ex_data)
#define SSL_set_session (libssl()->SSL_set_session)
#define SSL_set_shutdown (libssl()->SSL_set_shutdown)
#define SSL_shutdown (libssl()->SSL_shutdown)
#define SSL_write (libssl()->SSL_write)
#define TLS_client_method (libssl()->TLS_client_method)
#define TLS_server_method (libssl()->TLS_server_method)
#define X509_NAME_ENTRY_get_data (libssl()->X509_NAME_ENTRY_get_data)
#define X509_NAME_dup (libssl()->X509_NAME_dup)
#define X509_NAME_free (libssl()->X509_NAME_free)
#define X509_NAME_get_entry (libssl()->X509_NAME_get_entry)
#define X509_NAME_get_index_by_NID (libssl()->X509_NAME_get_index_by_NID)
#define X509_STORE_add_cert (libssl()->X509_STORE_add_cert)
#define X509_STORE_free (libssl()->X509_STORE_free)
#define X509_STORE_new (libssl()->X509_STORE_new)
#define X509_VERIFY_PARAM_set1_host (libssl()->X509_VERIFY_PARAM_set1_host)
#define X509_VERIFY_PARAM_set1_ip_asc (libssl()->X509_VERIFY_PARAM_set1_ip_asc)
#define X509_VERIFY_PARAM_set_hostflags (libssl()->X509_VERIFY_PARAM_set_hostflags)
#define X509_free (libssl()->X509_free)
#define X509_get0_notAfter (libssl()->X509_get0_notAfter)
#define X509_get0_notBefore (libssl()->X509_get0_notBefore)
#define X509_get_default_cert_file (libssl()->X509_get_default_cert_file)
#define X509_get_ext_d2i (libssl()->X509_get_ext_d2i)
#define X509_get_subject_name (libssl()->X509_get_subject_name)
#define X509_verify_cert_error_string (libssl()->X509_verify_cert_error_string)
/* clang-format on */

#endif
