/* SPDX-License-Identifier: MIT */
#ifndef BECALM_TESTS_ALLOCATOR_H
#define BECALM_TESTS_ALLOCATOR_H

/* For tests with a malloc() of their own: BECALM_OWN_ALLOCATOR is 0 where they can't have one. The sanitizers bring an
 * allocator of their own, which a test's must not stand in front of; musl has no such names. */

#include <stddef.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define BECALM_OWN_ALLOCATOR 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BECALM_OWN_ALLOCATOR 0
#endif
#endif
#ifndef BECALM_OWN_ALLOCATOR
#define BECALM_OWN_ALLOCATOR 1
#endif

#if BECALM_OWN_ALLOCATOR
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t alignment, size_t);
void __libc_free(void *);

/* Libraries and the C library are to meet the test's functions too. */
#define BECALM_VISIBLE __attribute__((visibility("default")))
#endif

#endif
