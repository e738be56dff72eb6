# SPDX-License-Identifier: MIT
#
# Functions that make tests and fuzz targets of files, one for each kind of folder.

# becalm_tests(FOLDER LIBS ... [THREADS regex] [EXCEPT test_x ...]): every FOLDER/test_*.c is a cmocka program and a
# test of that name. The regex finds sources whose programs have threads. Programs without threads are left out under
# ThreadSanitizer; elsewhere they go into the list BECALM_ONE_THREAD, so that a test can check that they have one
# thread.
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
                                                   $<$<BOOL:${BECALM_FEW_SEEDS}>:BECALM_FEW_SEEDS>
                                                   $<$<BOOL:${BECALM_FEW_RUNS}>:BECALM_FEW_RUNS>)
        add_test(NAME ${name} COMMAND ${name})
        set_tests_properties(${name} PROPERTIES TIMEOUT 900) # a guard: sanitizers cost up to twenty times, on a busy machine
        # A test hardly runs itself: to optimise it takes longer than it saves. Only where gcc does a little are its warnings whole.
        if(BECALM_SANITIZE OR CMAKE_C_COMPILER_ID MATCHES Clang)
            target_compile_options(${name} PRIVATE -O0 -U_FORTIFY_SOURCE)
        else()
            target_compile_options(${name} PRIVATE -O1)
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
    # Python keeps compiled files: else each test would compile its own file and its helpers again. Plugins of other
    # packages take a quarter of pytest's start, and no test uses them.
    set(environment BECALM=$<TARGET_FILE:becalm> BECALM_CHAIN_SECONDS=${chain} PYTHONDONTWRITEBYTECODE= PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
                    PYTHONPATH=${CMAKE_CURRENT_SOURCE_DIR}/lib)
    set(timeout 900) # a guard, not a claim
    if(BECALM_SANITIZE)
        list(APPEND environment BECALM_SANITIZED=1) # tests that depend on speed ask for less
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
        add_test(NAME ${name} COMMAND ${BECALM_PYTHON} -m pytest -q -p no:cacheprovider -p chosen ${source})
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
            ENVIRONMENT "BECALM=$<TARGET_FILE:becalm>")
    endforeach()
endfunction()

# becalm_node_tests(FOLDER): every FOLDER/test_*.js is a test FOLDER/test_* that needs no browser. Without node there
# are no such tests.
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

# becalm_fuzzers(FOLDER LIBS ... SEEDS name=folder ... FULL name ...): every FOLDER/fuzz_*.c is a libFuzzer target, and
# a test. Those in FULL run for BECALM_FUZZ_SECONDS each; the other targets share that time, or try BECALM_FUZZ_RUNS
# inputs if that is sooner. A target begins with the files of SEEDS, if it is named there, and of FOLDER/corpus/<name>/:
# each has some, or the build is refused. New inputs stay in the build tree; inputs worth keeping are committed to that
# folder. BECALM_FUZZ_SEED makes two runs try the same inputs.
function(becalm_fuzzers folder)
    cmake_parse_arguments(arg "" "" "LIBS;SEEDS;FULL" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/fuzz_*.c)
    list(LENGTH sources count)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        math(EXPR seconds "(${BECALM_FUZZ_SECONDS} + ${count} - 1) / ${count}")
        set(runs ${BECALM_FUZZ_RUNS})
        if(name IN_LIST arg_FULL)
            set(seconds ${BECALM_FUZZ_SECONDS})
            set(runs -1)
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
        add_test(NAME ${name} COMMAND ${name} -seed=${BECALM_FUZZ_SEED} -max_total_time=${seconds} -runs=${runs} -timeout=10 -print_final_stats=1
                                      -artifact_prefix=${learned}- ${learned} ${kept})
        # It computes all the time, so it takes the places of a whole processor: the Makefile has four tests for each.
        set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} PROCESSORS 4)
    endforeach()
endfunction()
