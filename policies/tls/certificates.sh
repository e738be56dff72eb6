#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes an authority and the certificates that the policies in this folder name, for 30 days: to try them out, not for
# production. Writes them into the folder certs beside this file.
set -eu
mkdir -p "$(dirname "$0")/certs"
cd "$(dirname "$0")/certs"
umask 077

key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"

# shellcheck disable=SC2086 # the words of $key are words
openssl req -x509 $key -keyout ca.key -out ca.pem -days 30 -subj "/CN=try-out authority" \
    -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign" 2>/dev/null

# issue NAME ALTERNATIVE-NAMES
issue() {
    # shellcheck disable=SC2086
    openssl req -new $key -keyout "$1.key" -out "$1.csr" -subj "/CN=$1" 2>/dev/null
    printf 'basicConstraints=critical,CA:FALSE\nsubjectAltName=%s\n' "$2" >"$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.pem" 2>/dev/null
    rm "$1.csr" "$1.ext"
}

issue edge "DNS:localhost,IP:127.0.0.1"
issue orders "DNS:orders.shop,URI:spiffe://shop/orders"
issue cart "URI:spiffe://shop/cart"
