#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test_install.sh BUILD: the files of `make install` work for a program outside of this tree.
# Installs into a scratch prefix below BUILD and moves it once, to see that nothing remembers where it was.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$1
cc=${CC:-cc}
cxx=${CXX:-c++}
work=$build/install-test
prefix=$work/prefix
strict=(-Wall -Wextra -Wpedantic -Werror)

fail() {
    echo "FAIL: $*"
    exit 1
}

install_it() {
    rm -rf "$work"
    mkdir -p "$work"
    DESTDIR='' cmake --install "$build" --prefix "$work/first" >"$work/install.log" ||
        fail "install: $(cat "$work/install.log")"
    mv "$work/first" "$prefix"
    libdir=$(dirname "$(find "$prefix" -name libbecalm.so)")
    export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
    read -ra flags < <(pkg-config --cflags --libs libbecalm) || fail "pkg-config does not know libbecalm"
    [[ " ${flags[*]} " == *" -I$prefix/"* || " ${flags[*]} " == *" -I$libdir/"* ]] || fail "pkg-config says ${flags[*]}"
}

# Every header compiles alone, in both languages, without a warning.
headers_stand_alone() {
    local header
    for header in "$prefix"/include/becalm/*.h; do
        header=becalm/$(basename "$header")
        echo "#include <$header>" | "$cc" -std=c17 "${strict[@]}" -I"$prefix/include" -x c -fsyntax-only - ||
            fail "$header as C"
        echo "#include <$header>" | "$cxx" -std=c++17 "${strict[@]}" -I"$prefix/include" -x c++ -fsyntax-only - ||
            fail "$header as C++"
    done
}

examples_build() {
    local example libraries
    for example in "$root"/examples/*.c; do
        [[ -e $example ]] || continue
        libraries=("${flags[@]}")
        if [[ $example == */curl_* ]]; then
            read -ra libraries < <(pkg-config --cflags --libs libbecalm-curl) || fail "no libbecalm-curl"
        fi
        "$cc" -std=c17 "${strict[@]}" "$example" "${libraries[@]}" -o "$work/$(basename "$example" .c)" -pthread ||
            fail "$example does not build"
    done
    for example in curl_easy curl_multi curl_socket; do # no process listens there, so the calls fail, and say why
        ! "$work/$example" "$root/policies/reference.yaml" http://127.0.0.1:1/ >"$work/$example.log" 2>&1 ||
            fail "$example reached nobody and is content"
        grep -q ' after 1 attempts: ' "$work/$example.log" || fail "$example: $(cat "$work/$example.log")"
    done
    if [[ -x $work/quickstart ]]; then
        "$work/quickstart" >"$work/quickstart.log" || fail "quickstart: $(cat "$work/quickstart.log")"
    fi
}

# A program that needs only one library, and gets its path, does not need the path of the other.
search_path_is_enough() {
    local libraries
    read -ra libraries < <(pkg-config --cflags --libs libbecalm-curl)
    cat >"$work/told.c" <<'END'
#include <becalm/curl.h>
int main(void)
{
    return becalm_curl_perform(NULL, NULL) == CURLE_BAD_FUNCTION_ARGUMENT ? 0 : 1;
}
END
    "$cc" "$work/told.c" -Wl,--as-needed "${libraries[@]}" -Wl,-rpath,"$libdir" -o "$work/told" || fail "it does not link"
    env -u LD_LIBRARY_PATH "$work/told" || fail "libbecalm-curl does not find libbecalm beside it"
}

cxx_works() {
    "$cxx" -std=c++17 "${strict[@]}" "$here/consumer.cc" "${flags[@]}" -o "$work/consumer" || fail "C++ does not build"
    "$work/consumer" || fail "C++ does not run"
    local private
    read -ra private < <(pkg-config --static --libs libbecalm)
    private=("${private[@]/#-lbecalm/$libdir/libbecalm.a}")
    "$cxx" -std=c++17 "${strict[@]}" "$here/consumer.cc" -I"$prefix/include" -o "$work/static" "${private[@]}" ||
        fail "the archive does not link"
    "$work/static" || fail "the archive's program does not run"
}

# A program may have functions named as those which files of ours share among themselves: here it has them all, and each
# of them ends it. So the archives neither stand in its way nor call them.
names_are_free() {
    local module libraries
    for module in engine run http policy meter loop libssl tls wire redis curl; do
        shown "$build/libbecalm_$module.a"
    done | grep -vE '^(becalm_|_)' | sort -u >"$work/names"
    [[ $(grep -cxE 'yaml_parse|client_find' "$work/names") == 2 ]] || fail "which names do files share?"
    { echo '#include <stdlib.h>' && sed 's/.*/void &(void);\nvoid &(void)\n{\n    abort();\n}/' "$work/names"; } >"$work/names.c"
    "$cc" -std=c17 "${strict[@]}" -c "$work/names.c" -o "$work/names.o" || fail "the names do not compile"
    # The archives of ours and the rest as usual: all that libcurl's own archive wants is on few machines.
    read -ra libraries < <(echo "$(pkg-config --static --cflags --libs libbecalm)" "$(pkg-config --libs libcurl hiredis)")
    libraries=("${libraries[@]/#-lbecalm/-l:libbecalm.a}")
    "$cc" -std=c17 "${strict[@]}" "$here/own_names.c" "$work/names.o" -L"$libdir" -l:libbecalm-curl.a "${libraries[@]}" \
        -o "$work/own_names" || fail "the archives want names that the program has"
    "$work/own_names" || fail "the archives call what the program has under their names"
}

find_package_works() {
    if ! { cmake -S "$here" -B "$work/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" &&
        cmake --build "$work/cmake"; } >"$work/cmake.log" 2>&1; then
        fail "find_package: $(cat "$work/cmake.log")"
    fi
    "$work/cmake/consumer" || fail "what find_package built does not run"
    "$work/cmake/consumer_static" || fail "what find_package built from the archive does not run"
    "$work/cmake/curl_consumer" || fail "what find_package built with libbecalm-curl does not run"
    "$work/cmake/curl_consumer_static" || fail "what find_package built with libbecalm-curl's archive does not run"
}

# shown FILE [OPTION]: the names that a program which links the file may run into, hidden becalm__ among them.
shown() {
    nm -g --defined-only -P "${@:2}" "$1" | awk '$2 ~ /^[A-Z]$/ { print $1 }' | sort -u
}

library_is_tidy() {
    local foreign soname library
    for library in libbecalm libbecalm-curl; do
        foreign=$(shown "$libdir/$library.a" | grep -v '^becalm_' || true)
        [[ -z $foreign ]] || fail "$library.a shows $foreign"
        ! readelf -SW "$libdir/$library.a" | grep -F .gnu.lto_ || fail "$library.a has a compiler's own form of its names"
        foreign=$(comm -3 <(shown "$libdir/$library.a" | grep '^becalm_[a-z]') <(shown "$libdir/$library.so" -D))
        [[ -z $foreign ]] || fail "only one of $library.a and $library.so has $foreign"
        foreign=$(shown "$libdir/$library.so" -D | grep -vE '^becalm_[a-z]' || true)
        [[ -z $foreign ]] || fail "$library.so exports $foreign"
        soname=$(readelf -d "$libdir/$library.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
        [[ $soname == "$library.so.0" ]] || fail "the SONAME is $soname"
    done
    # Objects in both libraries would exist twice: libbecalm-curl only adds to libbecalm.
    foreign=$(comm -12 <(shown "$libdir/libbecalm.so" -D) <(shown "$libdir/libbecalm-curl.so" -D))
    [[ -z $foreign ]] || fail "both libraries have $foreign"
    foreign=$(comm -12 <(shown "$libdir/libbecalm.a") <(shown "$libdir/libbecalm-curl.a"))
    [[ -z $foreign ]] || fail "both archives have $foreign"
    shown "$libdir/libbecalm.so" -D | grep -x becalm_call_step >/dev/null || fail "libbecalm.so has no becalm_call_step"
    shown "$libdir/libbecalm-curl.so" -D | grep -x becalm_curl_perform >/dev/null ||
        fail "libbecalm-curl.so has no becalm_curl_perform"
    [[ $(pkg-config --modversion libbecalm) == "$("$work/consumer")" ]] || fail "pkg-config has another version"
    # A unit needs the whole path of its program, which is below this tree here.
    grep -q "^ExecStart=$work/first/bin/becalm proxy" "$prefix/lib/systemd/system/becalm.service" || fail "the unit starts another program"
    ! grep -rIl --exclude=becalm.service "$root" "$prefix" || fail "these files know the source tree"
}

# The command runs from its new place, and the files of shells and man(1) are in their places.
command_works() {
    local file
    [[ $("$prefix/bin/becalm" --version | head -1) == "becalm $("$work/consumer")" ]] || fail "becalm --version"
    for file in "$root"/man/*.[1-8]; do
        file=man/man${file##*.}/$(basename "$file")
        [[ -s $prefix/share/$file ]] || fail "share/$file is not there"
    done
    bash -n "$prefix/share/bash-completion/completions/becalm" || fail "completion of bash"
    grep -q '^#compdef becalm' "$prefix/share/zsh/site-functions/_becalm" || fail "completion of zsh"
    grep -q '^complete -c becalm' "$prefix/share/fish/vendor_completions.d/becalm.fish" || fail "completion of fish"
    cmp -s "$prefix/share/becalm/becalm.schema.json" <("$prefix/bin/becalm" schema) || fail "the schema for editors"
}

install_it
headers_stand_alone
examples_build
search_path_is_enough
cxx_works
names_are_free
find_package_works
library_is_tidy
command_works
echo "libbecalm $(pkg-config --modversion libbecalm) installs and works"
