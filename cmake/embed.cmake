# SPDX-License-Identifier: MIT
#
# cmake -DOUTPUT=file.c -DTABLE=table "-DFILES=name=file;..." -P embed.cmake: writes the C source of a table as
# src/embedded.h has it. Bytes and not string literals, because C promises no more than 4095 characters of those.
set(texts "")
set(rows "")
set(index 0)
set(names "")
foreach(row IN LISTS FILES)
    string(REGEX MATCH "^([^=]+)=(.+)$" row ${row})
    set(name ${CMAKE_MATCH_1})
    list(APPEND names ${name})
    set(file ${CMAKE_MATCH_2})
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
    string(APPEND texts "static const unsigned char text_${index}[] = {\n    ${bytes}0x00,\n};\n\n")
    file(SHA256 ${file} hash)
    string(SUBSTRING ${hash} 0 16 hash)
    file(SHA1 ${file} sha1)
    string(APPEND rows "    {\"${name}\", text_${index}, sizeof text_${index} - 1, \"${hash}\", \"${sha1}\"},\n")
    math(EXPR index "${index} + 1")
endforeach()
list(JOIN names " " words)
file(WRITE ${OUTPUT}.new
    "/* SPDX-License-Identifier: MIT */\n"
    "/* Made by cmake/embed.cmake. */\n"
    "#include \"embedded.h\"\n\n"
    "extern const struct embedded embedded_${TABLE}[];\n"
    "extern const char embedded_${TABLE}_words[];\n\n"
    "${texts}"
    "const struct embedded embedded_${TABLE}[] = {\n${rows}    {NULL, NULL, 0, NULL, NULL},\n};\n\n"
    "const char embedded_${TABLE}_words[] = \"${words}\";\n"
)
file(RENAME ${OUTPUT}.new ${OUTPUT})
