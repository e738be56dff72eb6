/* SPDX-License-Identifier: MIT */
#ifndef BECALM_BASE_H
#define BECALM_BASE_H

/* All headers include this one. It defines visibility, atomics that C++ can include, assertions, error codes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define BECALM_BEGIN_DECLS extern "C" {
#define BECALM_END_DECLS   }
#else
#define BECALM_BEGIN_DECLS
#define BECALM_END_DECLS
#endif

#if defined(__GNUC__)
#define BECALM_API __attribute__((visibility("default")))
#else
#define BECALM_API
#endif

/* A field that several threads touch. C++ sees the plain type, because g++ can't compile _Atomic; the size and
 * alignment are the same, and only the library's own C code reads or writes the field. */
#ifdef __cplusplus
#define BECALM_ATOMIC(T) T
#else
#include <stdatomic.h>
#define BECALM_ATOMIC(T) _Atomic(T)
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "Becalm needs lock-free 64-bit atomics");
_Static_assert(sizeof(_Atomic(uint64_t)) == sizeof(uint64_t), "an atomic word must be one word");
#endif

BECALM_BEGIN_DECLS

/* Errors are ints: 0 or one of these. A refusal by a policy is never an error; it is a reason (reason.h). */
#define BECALM_ERRORS(X)                                                     \
    X(BECALM_EINVAL, -1, "a value is outside its documented range")          \
    X(BECALM_EPARSE, -2, "the policy text is not valid; see the diagnostic") \
    X(BECALM_EIO, -3, "the operating system refused; see errno")             \
    X(BECALM_ENOMEM, -4, "there is not enough memory")

enum becalm_error {
#define BECALM_ERROR_ENUM(name, number, sentence) name = number,
    BECALM_ERRORS(BECALM_ERROR_ENUM)
#undef BECALM_ERROR_ENUM
};

/* The sentence of an error code, without a full stop; "no error" for 0. Never NULL. */
BECALM_API const char *becalm_error_sentence(int error);

/* Called when the library finds a bug in itself or in its use, in release builds too. Prints and aborts. */
BECALM_API
#if defined(__GNUC__)
__attribute__((noreturn, cold))
#endif
void becalm_assert_failed(const char *expression, const char *file, int line);

#define BECALM_ASSERT(e)     ((e) ? (void)0 : becalm_assert_failed(#e, __FILE__, __LINE__))
#define BECALM_UNREACHABLE() becalm_assert_failed("unreachable", __FILE__, __LINE__)

BECALM_END_DECLS

#endif
