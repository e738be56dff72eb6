# SPDX-License-Identifier: MIT
#
# The common part of the CMakeLists.txt files: warnings, sanitizers, and one function per kind of target.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(CARES REQUIRED IMPORTED_TARGET libcares)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
pkg_check_modules(HIREDIS REQUIRED IMPORTED_TARGET hiredis)
pkg_check_modules(SSL REQUIRED IMPORTED_TARGET libssl>=3)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the same objects go into the archives and the shared library
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

add_compile_options(
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wswitch-enum -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -Wundef -Wwrite-strings
    $<$<BOOL:${BECALM_WERROR}>:-Werror>
    -fno-semantic-interposition # a function of ours may be inlined into its neighbours
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= # assertions print src/engine/x.c, wherever it was built
)
add_link_options(LINKER:--as-needed) # a program without calls loads no libcurl
find_program(BECALM_LLD ld.lld)
if(BECALM_LLD AND BECALM_SANITIZE AND CMAKE_C_COMPILER_ID MATCHES Clang)
    add_link_options(-fuse-ld=lld LINKER:--threads=1) # clang puts its sanitizers into each of two hundred programs: lld takes half the time of the default linker
endif()
if(BECALM_SANITIZE)
    add_compile_options(-fsanitize=${BECALM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${BECALM_SANITIZE})
    # Instruments leave hundreds of thousands of addresses in a program: one that is linked for a fixed place need not
    # relocate them each time that a test starts it. Unused functions are removed, too: asan's search for leaks would
    # read them at each end.
    set(CMAKE_POSITION_INDEPENDENT_CODE OFF)
    add_compile_options(-fno-pie)
    add_link_options(-no-pie LINKER:--gc-sections)
endif()
if(BECALM_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
include(harden)
# gcc clears a struct of some hundred bytes by a loop of eight bytes a turn; the C library's memset() needs far fewer instructions.
include(CheckCCompilerFlag)
set(memset_by_library -mmemset-strategy=unrolled_loop:64:noalign,libcall:-1:noalign)
check_c_compiler_flag(${memset_by_library} BECALM_HAS_MEMSET_STRATEGY)
if(BECALM_HAS_MEMSET_STRATEGY)
    string(APPEND CMAKE_C_FLAGS_RELEASE " ${memset_by_library}")
endif()

# becalm_module(NAME [SELDOM] SOURCES ... [DEPS ...]): src/NAME becomes the archive becalm_NAME. Sources are in reading order.
# Hidden headers of other folders are included by their folder, "policy/yaml.h", so src alone is on the path: with
# src/policy there, <yaml.h> would no longer be libyaml's. SELDOM: its code runs once in a while, not with every call. Optimised and
# sanitized at once, code takes three times as long to compile, which is more than the tests would save.
function(becalm_module name)
    cmake_parse_arguments(arg "SELDOM" "" "SOURCES;DEPS" ${ARGN})
    list(TRANSFORM arg_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/${name}/)
    add_library(becalm_${name} STATIC ${arg_SOURCES})
    target_include_directories(becalm_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(becalm_${name} PUBLIC ${arg_DEPS})
    if(arg_SELDOM AND BECALM_SANITIZE AND BECALM_TESTS)
        target_compile_options(becalm_${name} PRIVATE -O0)
    endif()
endfunction()

# becalm_embed(TARGET TABLE name=file...): builds the files into the target, in this order, as a table: src/embedded.h.
function(becalm_embed target table)
    list(TRANSFORM ARGN REPLACE "=" "=${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE rows)
    list(TRANSFORM rows REPLACE "^[^=]+=" "" OUTPUT_VARIABLE files)
    set(output ${PROJECT_BINARY_DIR}/embedded_${table}.c)
    set(script ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
    add_custom_command(OUTPUT ${output} DEPENDS ${files} ${script} VERBATIM
                       COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DTABLE=${table} "-DFILES=${rows}" -P ${script})
    target_sources(${target} PRIVATE ${output})
endfunction()

# becalm_scenarios(TARGET FOLDER): builds FOLDER/*.yaml into the target, each under its file's name.
function(becalm_scenarios target folder)
    file(GLOB names RELATIVE ${PROJECT_SOURCE_DIR}/${folder} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.yaml)
    list(TRANSFORM names REPLACE "\\.yaml$" "")
    list(SORT names) # with .yaml behind them, a-b would come before a
    list(TRANSFORM names REPLACE "(.+)" "\\1=${folder}/\\1.yaml" OUTPUT_VARIABLE rows)
    becalm_embed(${target} scenarios ${rows})
endfunction()

# becalm_command(NAME MAIN source MODULE module MAN page...): the program, its manual pages, completion scripts for
# shells and the schema for editors, which the program prints itself.
function(becalm_command name)
    cmake_parse_arguments(arg "" "MAIN;MODULE" "MAN" ${ARGN})
    add_executable(${name} ${arg_MAIN})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${name} PRIVATE ${arg_MODULE})
    install(TARGETS ${name} COMPONENT command)
    foreach(page IN LISTS arg_MAN)
        string(REGEX REPLACE ".*\\." "" section ${page})
        install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT command)
    endforeach()
    if(BECALM_SANITIZE)
        return() # a sanitized program may want a special environment to run, and is not installed
    endif()

    set(folder ${PROJECT_BINARY_DIR}/completion)
    file(MAKE_DIRECTORY ${folder})
    foreach(shell bash zsh fish)
        add_custom_command(OUTPUT ${folder}/${name}.${shell} DEPENDS ${name} VERBATIM
                           COMMAND ${name} completion ${shell} > ${folder}/${name}.${shell})
    endforeach()
    set(schema ${PROJECT_BINARY_DIR}/${name}.schema.json)
    add_custom_command(OUTPUT ${schema} DEPENDS ${name} VERBATIM COMMAND ${name} schema > ${schema})
    add_custom_target(${name}_completion ALL
                      DEPENDS ${folder}/${name}.bash ${folder}/${name}.zsh ${folder}/${name}.fish ${schema})
    set(share ${CMAKE_INSTALL_DATADIR})
    install(FILES ${folder}/${name}.bash DESTINATION ${share}/bash-completion/completions RENAME ${name} COMPONENT command)
    install(FILES ${folder}/${name}.zsh DESTINATION ${share}/zsh/site-functions RENAME _${name} COMPONENT command)
    install(FILES ${folder}/${name}.fish DESTINATION ${share}/fish/vendor_completions.d COMPONENT command)
    install(FILES ${schema} DESTINATION ${share}/${name} COMPONENT command)
endfunction()

# becalm_programs(FOLDER [LIBS ...]): every FOLDER/*.c is a program of its own. Such folders are the only ones that are
# globbed.
function(becalm_programs folder)
    cmake_parse_arguments(arg "" "" "LIBS" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        add_executable(${name} ${source})
        target_link_libraries(${name} PRIVATE ${arg_LIBS} becalm_engine Threads::Threads)
        target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
        set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${folder})
    endforeach()
endfunction()

include(tests)
include(library)
