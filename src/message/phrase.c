/* SPDX-License-Identifier: MIT */
#include "phrase.h"

#include <stdbool.h>
#include <stddef.h>

enum { STATUS_MIN = 100 };

static const char *const phrases[] = {
    [100 - STATUS_MIN] = "Continue",
    [101 - STATUS_MIN] = "Switching Protocols",
    [102 - STATUS_MIN] = "Processing",
    [103 - STATUS_MIN] = "Early Hints",
    [200 - STATUS_MIN] = "OK",
    [201 - STATUS_MIN] = "Created",
    [202 - STATUS_MIN] = "Accepted",
    [203 - STATUS_MIN] = "Non-Authoritative Information",
    [204 - STATUS_MIN] = "No Content",
    [205 - STATUS_MIN] = "Reset Content",
    [206 - STATUS_MIN] = "Partial Content",
    [207 - STATUS_MIN] = "Multi-Status",
    [208 - STATUS_MIN] = "Already Reported",
    [226 - STATUS_MIN] = "IM Used",
    [300 - STATUS_MIN] = "Multiple Choices",
    [301 - STATUS_MIN] = "Moved Permanently",
    [302 - STATUS_MIN] = "Found",
    [303 - STATUS_MIN] = "See Other",
    [304 - STATUS_MIN] = "Not Modified",
    [305 - STATUS_MIN] = "Use Proxy",
    [307 - STATUS_MIN] = "Temporary Redirect",
    [308 - STATUS_MIN] = "Permanent Redirect",
    [400 - STATUS_MIN] = "Bad Request",
    [401 - STATUS_MIN] = "Unauthorized",
    [402 - STATUS_MIN] = "Payment Required",
    [403 - STATUS_MIN] = "Forbidden",
    [404 - STATUS_MIN] = "Not Found",
    [405 - STATUS_MIN] = "Method Not Allowed",
    [406 - STATUS_MIN] = "Not Acceptable",
    [407 - STATUS_MIN] = "Proxy Authentication Required",
    [408 - STATUS_MIN] = "Request Timeout",
    [409 - STATUS_MIN] = "Conflict",
    [410 - STATUS_MIN] = "Gone",
    [411 - STATUS_MIN] = "Length Required",
    [412 - STATUS_MIN] = "Precondition Failed",
    [413 - STATUS_MIN] = "Content Too Large",
    [414 - STATUS_MIN] = "URI Too Long",
    [415 - STATUS_MIN] = "Unsupported Media Type",
    [416 - STATUS_MIN] = "Range Not Satisfiable",
    [417 - STATUS_MIN] = "Expectation Failed",
    [421 - STATUS_MIN] = "Misdirected Request",
    [422 - STATUS_MIN] = "Unprocessable Content",
    [423 - STATUS_MIN] = "Locked",
    [424 - STATUS_MIN] = "Failed Dependency",
    [425 - STATUS_MIN] = "Too Early",
    [426 - STATUS_MIN] = "Upgrade Required",
    [428 - STATUS_MIN] = "Precondition Required",
    [429 - STATUS_MIN] = "Too Many Requests",
    [431 - STATUS_MIN] = "Request Header Fields Too Large",
    [451 - STATUS_MIN] = "Unavailable For Legal Reasons",
    [500 - STATUS_MIN] = "Internal Server Error",
    [501 - STATUS_MIN] = "Not Implemented",
    [502 - STATUS_MIN] = "Bad Gateway",
    [503 - STATUS_MIN] = "Service Unavailable",
    [504 - STATUS_MIN] = "Gateway Timeout",
    [505 - STATUS_MIN] = "HTTP Version Not Supported",
    [506 - STATUS_MIN] = "Variant Also Negotiates",
    [507 - STATUS_MIN] = "Insufficient Storage",
    [508 - STATUS_MIN] = "Loop Detected",
    [511 - STATUS_MIN] = "Network Authentication Required",
};

const char *status_phrase(uint32_t status)
{
    size_t index = (size_t)status - STATUS_MIN;
    bool known = status >= STATUS_MIN && index < sizeof phrases / sizeof *phrases && phrases[index] != NULL;
    return known ? phrases[index] : "";
}
