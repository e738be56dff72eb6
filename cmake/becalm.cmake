# SPDX-License-Identifier: MIT
#
# What the CMakeLists.txt files have in common: warnings, sanitizers, and one function per kind of thing that is built.
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
add_link_options(LINKER:--as-needed) # a program that asks nobody loads no libcurl
if(BECALM_SANITIZE)
    add_compile_options(-fsanitize=${BECALM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${BECALM_SANITIZE})
endif()
if(BECALM_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
include(harden)

# becalm_module(NAME SOURCES ... [DEPS ...]): src/NAME becomes the archive becalm_NAME. Sources are in reading order.
# Hidden headers of other folders are included by their folder, "policy/yaml.h", so src alone is on the path: with
# src/policy there, <yaml.h> would no longer be libyaml's.
function(becalm_module name)
    cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
    list(TRANSFORM arg_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/${name}/)
    add_library(becalm_${name} STATIC ${arg_SOURCES})
    target_include_directories(becalm_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(becalm_${name} PUBLIC ${arg_DEPS})
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

# becalm_command(NAME MAIN source MODULE module MAN page...): the program, its manual pages, what shells need to
# complete it and editors to know its policies, which the program prints itself.
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

# becalm_tests(FOLDER LIBS ... [THREADS regex] [EXCEPT test_x ...]): every FOLDER/test_*.c is a cmocka program and a test of that name. The
# regex says by what a source shows that its program has threads. The others are left out where ThreadSanitizer looks on;
# elsewhere they go into the list BECALM_ONE_THREAD, so that a test may see that they are alone indeed.
function(becalm_tests folder)
    cmake_parse_arguments(arg "" "THREADS" "LIBS;EXCEPT" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/test_*.c)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        if(name IN_LIST arg_EXCEPT)
            continue()
        endif()
        set(threads)
        if(arg_THREADS)
            file(STRINGS ${source} threads REGEX "${arg_THREADS}")
        endif()
        if(NOT threads)
            if(BECALM_SANITIZE MATCHES thread)
                continue()
            endif()
            list(APPEND BECALM_ONE_THREAD $<TARGET_FILE:${name}>)
        endif()
        add_executable(${name} ${source})
        target_link_libraries(${name} PRIVATE ${arg_LIBS} becalm_engine PkgConfig::CMOCKA Threads::Threads)
        target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/lib
                                                   ${PROJECT_SOURCE_DIR}/src)
        target_compile_definitions(${name} PRIVATE BECALM_POLICIES="${PROJECT_SOURCE_DIR}/policies"
                                                   $<$<BOOL:${BECALM_FEW_SEEDS}>:BECALM_FEW_SEEDS>)
        add_test(NAME ${name} COMMAND ${name})
        set_tests_properties(${name} PROPERTIES TIMEOUT 900) # a guard: sanitizers cost up to twenty times, on a busy machine
        # A test hardly runs itself: to optimise it takes longer than it saves. Only where gcc does are its warnings whole.
        if(BECALM_SANITIZE OR CMAKE_C_COMPILER_ID MATCHES Clang)
            target_compile_options(${name} PRIVATE -O0 -U_FORTIFY_SOURCE)
        endif()
    endforeach()
    set(BECALM_ONE_THREAD ${BECALM_ONE_THREAD} PARENT_SCOPE)
endfunction()

# becalm_pytests(FOLDER [LAB program] [ONLY test_x ...] [EXCEPT test_x ...]): every FOLDER/test_*.py is a test FOLDER/test_* that
# runs the built command as a user types it, or a program made for the tests. Debian's own python has pytest; another one that comes
# first on the path may not.
function(becalm_pytests folder)
    cmake_parse_arguments(arg "" "LAB" "ONLY;EXCEPT" ${ARGN})
    find_program(BECALM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
    find_program(BECALM_PYTHON python3)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/test_*.py)
    set(chain 20) # seconds that ten gateways in a row have a dead leaf
    if(BECALM_SANITIZE)
        set(chain 6)
    endif()
    set(environment BECALM=$<TARGET_FILE:becalm> BECALM_CHAIN_SECONDS=${chain})
    set(timeout 900) # a guard, not a claim
    if(BECALM_SANITIZE)
        list(APPEND environment BECALM_SANITIZED=1) # what depends on speed asks for less
    endif()
    if(arg_LAB)
        list(APPEND environment BECALM_LAB=$<TARGET_FILE:${arg_LAB}>)
    endif()
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        if((arg_ONLY AND NOT name IN_LIST arg_ONLY) OR name IN_LIST arg_EXCEPT)
            continue()
        endif()
        set(name ${folder}/${name})
        add_test(NAME ${name} COMMAND ${BECALM_PYTHON} -B -m pytest -q -p no:cacheprovider ${source})
        set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} ENVIRONMENT "${environment}")
    endforeach()
endfunction()

# becalm_browser_tests(FOLDER): every FOLDER/test_*.js is a test FOLDER/test_* in the system's chromium. They print why if
# they have to be skipped.
function(becalm_browser_tests folder)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/test_*.js)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        set(name ${folder}/${name})
        add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/run ${source})
        set_tests_properties(${name} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77 PROCESSORS 2
            ENVIRONMENT "BECALM=$<TARGET_FILE:becalm>;BECALM_PICTURES=${PROJECT_BINARY_DIR}/pictures")
    endforeach()
endfunction()

# becalm_node_tests(FOLDER): every FOLDER/test_*.js is a test FOLDER/test_* of what needs no browser. Without node there are none.
function(becalm_node_tests folder)
    find_program(BECALM_NODE node)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/test_*.js)
    foreach(source IN LISTS sources)
        if(BECALM_NODE)
            get_filename_component(name ${source} NAME_WE)
            add_test(NAME ${folder}/${name} COMMAND ${BECALM_NODE} --test --test-reporter=spec ${source})
            set_tests_properties(${folder}/${name} PROPERTIES TIMEOUT 300)
        endif()
    endforeach()
endfunction()

# becalm_fuzzers(FOLDER LIBS ... SEEDS name=folder ... FULL name ...): every FOLDER/fuzz_*.c is a libFuzzer target, and a
# test. Those in FULL run for BECALM_FUZZ_SECONDS each, the others share as much. It begins with the files of SEEDS, if it
# is named there, and of FOLDER/corpus/<name>/: each has some, or the build is refused. What it learns stays in the build
# tree; inputs worth keeping are committed to that folder. BECALM_FUZZ_SEED makes two runs try the same inputs.
function(becalm_fuzzers folder)
    cmake_parse_arguments(arg "" "" "LIBS;SEEDS;FULL" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/fuzz_*.c)
    list(LENGTH sources count)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        math(EXPR seconds "(${BECALM_FUZZ_SECONDS} + ${count} - 1) / ${count}")
        if(name IN_LIST arg_FULL)
            set(seconds ${BECALM_FUZZ_SECONDS})
        endif()
        math(EXPR timeout "${seconds} + 300")
        set(learned ${PROJECT_BINARY_DIR}/corpus/${name})
        file(MAKE_DIRECTORY ${learned})
        file(GLOB kept ${PROJECT_SOURCE_DIR}/${folder}/corpus/${name})
        foreach(seed IN LISTS arg_SEEDS)
            if(seed MATCHES "^${name}=(.+)")
                list(APPEND kept ${PROJECT_SOURCE_DIR}/${CMAKE_MATCH_1})
            endif()
        endforeach()
        if(NOT kept)
            message(FATAL_ERROR "${folder}/${name}.c has no inputs to begin with: put some into ${folder}/corpus/${name}/")
        endif()
        add_executable(${name} ${source})
        target_link_libraries(${name} PRIVATE ${arg_LIBS} becalm_engine)
        target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        add_test(NAME ${name} COMMAND ${name} -seed=${BECALM_FUZZ_SEED} -max_total_time=${seconds} -timeout=10 -print_final_stats=1
                                      -artifact_prefix=${learned}- ${learned} ${kept})
        set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout})
    endforeach()
endfunction()

# becalm_library_pair(TARGET OUTPUT MODULES ... [HIDDEN ...]): TARGET_shared and TARGET_static, libOUTPUT.so and .a, from
# these modules. HIDDEN are modules of another library whose hidden names these use.
function(becalm_library_pair target output)
    cmake_parse_arguments(arg "" "" "MODULES;HIDDEN" ${ARGN})
    list(TRANSFORM arg_MODULES REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
    set(exports ${PROJECT_SOURCE_DIR}/cmake/libbecalm.map)
    add_library(${target}_shared SHARED ${objects})
    add_library(${target}_static STATIC ${objects})
    set_target_properties(${target}_shared ${target}_static PROPERTIES OUTPUT_NAME ${output} LINKER_LANGUAGE C)
    set_target_properties(${target}_shared PROPERTIES LINK_DEPENDS ${exports}
                                                      VERSION ${PROJECT_VERSION} SOVERSION ${BECALM_SOVERSION})
    target_link_options(${target}_shared PRIVATE LINKER:--version-script=${exports} LINKER:-z,defs)
    target_include_directories(${target}_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_include_directories(${target}_static INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    list(TRANSFORM arg_MODULES REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
    list(TRANSFORM arg_HIDDEN REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE hidden)
    add_dependencies(${target}_static ${arg_MODULES} ${arg_HIDDEN})
    add_custom_command(TARGET ${target}_static POST_BUILD VERBATIM
                       COMMAND ${CMAKE_COMMAND} -DARCHIVE=$<TARGET_FILE:${target}_static> "-DMODULES=${archives};${hidden}"
                               -DNM=${CMAKE_NM} -DOBJCOPY=${CMAKE_OBJCOPY} -P ${PROJECT_SOURCE_DIR}/cmake/prefix_hidden.cmake)
    install(TARGETS ${target}_shared ${target}_static EXPORT becalm COMPONENT library)

    set(pcdir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
    file(RELATIVE_PATH up_to_prefix /prefix/${pcdir} /prefix) # relative, so that an installed tree may be moved
    string(REGEX REPLACE "/$" "" up_to_prefix ${up_to_prefix})
    configure_file(${PROJECT_SOURCE_DIR}/cmake/lib${output}.pc.in lib${output}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/lib${output}.pc DESTINATION ${pcdir} COMPONENT library)
endfunction()

# becalm_library(MODULE...): libbecalm.so and libbecalm.a from these modules, with headers, pkg-config and CMake files.
function(becalm_library)
    becalm_library_pair(becalm becalm MODULES ${ARGN})
    set_target_properties(becalm_shared PROPERTIES EXPORT_NAME becalm)
    set_target_properties(becalm_static PROPERTIES EXPORT_NAME static)
    target_link_libraries(becalm_shared PRIVATE Threads::Threads PkgConfig::YAML)
    target_link_libraries(becalm_static PUBLIC Threads::Threads INTERFACE yaml) # by name: the path is this machine's

    set(cmakedir ${CMAKE_INSTALL_LIBDIR}/cmake/Becalm)
    configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/BecalmConfig.cmake.in BecalmConfig.cmake
                                  INSTALL_DESTINATION ${cmakedir})
    # There is no stable ABI before 1.0, so 0.2 does not stand in for 0.1.
    write_basic_package_version_file(BecalmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/becalm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library
            FILES_MATCHING PATTERN "*.h")
    install(EXPORT becalm NAMESPACE Becalm:: FILE BecalmTargets.cmake DESTINATION ${cmakedir} COMPONENT library)
    install(FILES ${PROJECT_BINARY_DIR}/BecalmConfig.cmake ${PROJECT_BINARY_DIR}/BecalmConfigVersion.cmake
            DESTINATION ${cmakedir} COMPONENT library)
endfunction()

# becalm_curl_library(MODULE... HIDDEN MODULE...): libbecalm-curl from these modules, around libbecalm. What it uses of the
# latter's hidden functions libbecalm-curl.so has copies of; they are in the archives of the hidden modules, and the linker
# takes only what libbecalm.so does not show. libbecalm-curl.a finds them in libbecalm.a.
function(becalm_curl_library)
    cmake_parse_arguments(arg "" "" "MODULES;HIDDEN;MAN" ${ARGN})
    becalm_library_pair(becalm_curl becalm-curl MODULES ${arg_MODULES} HIDDEN ${arg_HIDDEN})
    # A program's own search path does not count for what its libraries need: libbecalm.so is beside this one.
    set_target_properties(becalm_curl_shared PROPERTIES EXPORT_NAME curl INSTALL_RPATH "$ORIGIN")
    set_target_properties(becalm_curl_static PROPERTIES EXPORT_NAME curl_static)
    list(TRANSFORM arg_HIDDEN REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
    add_dependencies(becalm_curl_shared ${arg_HIDDEN})
    target_link_libraries(becalm_curl_shared PRIVATE Threads::Threads PUBLIC becalm_shared INTERFACE curl
                                             PRIVATE ${archives} PkgConfig::CURL)
    target_link_libraries(becalm_curl_static PUBLIC becalm_static Threads::Threads INTERFACE curl)
    install(FILES ${arg_MAN} DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 COMPONENT library)
endfunction()
