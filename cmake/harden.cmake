# SPDX-License-Identifier: MIT
#
# Compiler hardening: flags that make a bug in a parser of network bytes end the process, rather than serve an attacker.
# BECALM_HARDEN=OFF leaves the compiler's defaults. tests/tools/test_hardened.sh checks the result with readelf.
#
# The engine is built like the rest. It needs __stack_chk_fail and __memcpy_chk from outside then, and tools/pure allows
# them: they only ever end the process, so the engine still reads no clock and remembers nothing. Without a stack protector for
# it a request costs no less.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)

# becalm_harden_flag(FLAG...): compiles everything with these flags, if the compiler knows them all.
function(becalm_harden_flag)
    string(MAKE_C_IDENTIFIER "BECALM_HAS_${ARGV0}" known)
    list(JOIN ARGN " " flags)
    check_c_compiler_flag("${flags}" ${known})
    if(${known})
        add_compile_options(${ARGN})
    endif()
    set(harden_known ${${known}} PARENT_SCOPE)
endfunction()

# Sanitizers have checks of their own, which these would answer before them.
if(NOT BECALM_HARDEN OR BECALM_SANITIZE)
    return()
endif()

check_pie_supported() # else CMake compiles for it and does not link it
becalm_harden_flag(-fstack-protector-strong)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64|AMD64|i.86") # compilers accept flags of another processor, and only warn
    becalm_harden_flag(-fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
    becalm_harden_flag(-mbranch-protection=standard)
endif()

# Locals without a value get zeros. clang 15 and older want to be told that this may end one day.
becalm_harden_flag(-ftrivial-auto-var-init=zero)
if(NOT harden_known AND CMAKE_C_COMPILER_ID MATCHES Clang)
    becalm_harden_flag(-enable-trivial-auto-var-init-zero-knowing-it-will-be-removed-from-clang -ftrivial-auto-var-init=zero)
endif()

# Copies into objects of known size are checked. Without optimisation glibc has only a warning for it. Some
# distributions define it already.
check_c_source_compiles("int main(int n, char **v) { return n == 0 && __builtin_dynamic_object_size(v, 0) != 0; }"
                        BECALM_HAS_DYNAMIC_OBJECT_SIZE)
set(level 2)
if(BECALM_HAS_DYNAMIC_OBJECT_SIZE)
    set(level 3)
endif()
add_compile_options("$<$<NOT:$<CONFIG:Debug>>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}>")

# All symbols are bound at the start, so that calls into other libraries need no table of stubs. That saves some of the
# cost of the other flags.
becalm_harden_flag(-fno-plt)

# All addresses of functions are known and read-only before main(); no stack and no segment can be both written and run.
add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack LINKER:-z,separate-code)
