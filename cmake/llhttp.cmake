# SPDX-License-Identifier: MIT
#
# llhttp, the parser of Node.js, as the target llhttp: the fuzz targets compare their fields of HTTP/1 heads with those
# of llhttp. Where the distribution has llhttp as a library, that is used; Debian 12 has only its sources (node-llhttp),
# which are compiled here. Before version 9 it has a loose mode, which is the default and accepts heads that must be
# refused. How a distribution built its library can't be seen from outside, so only a library from 9 on is used.
pkg_check_modules(LLHTTP QUIET IMPORTED_TARGET libllhttp>=9)
if(LLHTTP_FOUND)
    add_library(llhttp INTERFACE)
    target_link_libraries(llhttp INTERFACE PkgConfig::LLHTTP)
    return()
endif()

find_path(LLHTTP_SOURCES llhttp.c PATHS /usr/share/llhttp NO_DEFAULT_PATH DOC "Folder of llhttp.c, api.c and http.c")
find_path(LLHTTP_HEADERS llhttp.h PATHS /usr/share/include/llhttp NO_DEFAULT_PATH DOC "Folder of llhttp.h")
if(NOT LLHTTP_SOURCES OR NOT LLHTTP_HEADERS)
    message(FATAL_ERROR "llhttp is missing: install node-llhttp (its sources) or libllhttp-dev 9 or newer; "
                        "or set LLHTTP_SOURCES and LLHTTP_HEADERS")
endif()
file(STRINGS ${LLHTTP_SOURCES}/llhttp.c strict REGEX "^#if LLHTTP_STRICT_MODE")
file(STRINGS ${LLHTTP_HEADERS}/llhttp.h major REGEX "define LLHTTP_VERSION_MAJOR +[0-9]+")
string(REGEX REPLACE ".* " "" major "${major}")
if(major LESS 9 AND NOT strict)
    message(FATAL_ERROR "llhttp ${major} in ${LLHTTP_SOURCES} has no strict mode, without which it is no judge")
endif()

add_library(llhttp STATIC ${LLHTTP_SOURCES}/llhttp.c ${LLHTTP_SOURCES}/api.c ${LLHTTP_SOURCES}/http.c)
target_include_directories(llhttp SYSTEM PUBLIC ${LLHTTP_HEADERS})
target_compile_definitions(llhttp PUBLIC LLHTTP_STRICT_MODE=1)
target_compile_options(llhttp PRIVATE -w -fno-sanitize=all) # neither their warnings nor their bugs are ours, and instruments take four times as long
