# SPDX-License-Identifier: MIT
#
# cmake -DOUTPUT=file.c -DFILES=a.yaml;b.yaml -P embed.cmake: writes the C source of the tables in src/sim/builtin.h.
# Bytes and not string literals, because C promises no more than 4095 characters of those.
set(texts "")
set(rows "")
set(index 0)
set(names "")
foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME_WE)
    get_filename_component(folder ${file} DIRECTORY)
    list(APPEND names ${name})
endforeach()
list(SORT names) # files are sorted with .yaml, and then a-b comes before a
foreach(name IN LISTS names)
    set(file ${folder}/${name}.yaml)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
    string(APPEND texts "static const unsigned char text_${index}[] = {\n    ${bytes}0x00,\n};\n\n")
    string(APPEND rows "    {\"${name}\", text_${index}, sizeof text_${index} - 1},\n")
    math(EXPR index "${index} + 1")
endforeach()
list(JOIN names " " words)
file(WRITE ${OUTPUT}.new
    "/* SPDX-License-Identifier: MIT */\n"
    "/* Made from policies/scenarios by cmake/embed.cmake. */\n"
    "#include \"sim/builtin.h\"\n\n"
    "${texts}"
    "const struct builtin builtin_scenarios[] = {\n${rows}    {NULL, NULL, 0},\n};\n\n"
    "const char builtin_words[] = \"${words}\";\n"
)
file(RENAME ${OUTPUT}.new ${OUTPUT})
