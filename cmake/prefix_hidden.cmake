# SPDX-License-Identifier: MIT
#
# cmake -DARCHIVE=file.a "-DMODULES=module.a;..." -DNM=nm -DOBJCOPY=objcopy -P prefix_hidden.cmake: in the archive, puts
# becalm__hidden_ before every name that files of the modules share among themselves only. An archive can't hide names
# as a shared library does: a program with a yaml_parse() of its own would not link, or the archive would call the
# program's. The prefix becalm__ alone would clash with the engine's own hidden names.
#
# Renamed, and not one object with local names: so a program takes the members that it needs only, and libbecalm-curl.a
# finds in libbecalm.a the functions that both use. Names that begin with an underscore are the compiler's own and stay.
#
# What -flto leaves in an object has the names of before, so it goes; the machine code of -ffat-lto-objects remains.

# names_shown(VARIABLE archive...): the list of global names that they define.
function(names_shown variable)
    execute_process(COMMAND ${NM} -g -P --defined-only ${ARGN} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[^\n]+" symbols "${symbols}")
    list(FILTER symbols INCLUDE REGEX "^[A-Za-z][A-Za-z0-9_]* [A-Z] ") # no headings, no compiler's own
    list(TRANSFORM symbols REPLACE " .*" "")
    list(REMOVE_DUPLICATES symbols) # a module may be named twice
    set(${variable} ${symbols} PARENT_SCOPE)
endfunction()

names_shown(hidden ${MODULES})
list(FILTER hidden EXCLUDE REGEX "^becalm_")
list(TRANSFORM hidden REPLACE "(.+)" "\\1 becalm__hidden_\\1\n")
file(WRITE ${ARCHIVE}.names ${hidden})
execute_process(
    COMMAND ${OBJCOPY} --enable-deterministic-archives --redefine-syms=${ARCHIVE}.names --wildcard
            --remove-section=.gnu.lto_* --remove-section=.gnu.debuglto_* --remove-section=.llvm.lto ${ARCHIVE}
    RESULT_VARIABLE failed
)
names_shown(shown ${ARCHIVE})
list(FILTER shown INCLUDE REGEX "^becalm_[a-z]")
if(failed OR NOT shown)
    message(FATAL_ERROR "${ARCHIVE} has no machine code that could be renamed: build with -ffat-lto-objects or without -flto")
endif()
