#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# walk.sh FIRST: the newcomer's walk, inside of a root where the packages are installed: README's five ways, each with a service of one's
# own, on the ports from FIRST on. Says after how many seconds each way worked.
set -euo pipefail
first=$1
service=$first listen=$((first + 1)) admin=$((first + 2))
cd "$(mktemp -d)"
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
way() {
    echo "way: $1 after $SECONDS s"
}
up() {
    for _ in $(seq 600); do
        if curl -s -o /dev/null "$@"; then return; fi
        sleep 0.1
    done
    echo "nobody answers: $*" >&2
    return 1
}
mkdir www && echo mine >www/index.html
python3 -m http.server "$service" --bind 127.0.0.1 --directory www >/dev/null 2>&1 &
up "http://127.0.0.1:$service/"
SECONDS=0

# 1. The gateway: README's one minute.
cat >becalm.yaml <<YAML
listen: 127.0.0.1:$listen
admin: 127.0.0.1:$admin
services:
  files: {hosts: ["127.0.0.1:$service"], match: {prefix: /}}
YAML
becalm check becalm.yaml >/dev/null
becalm proxy --quiet becalm.yaml 2>gateway.log &
gateway=$!
up "http://127.0.0.1:$listen/"
[[ $(curl -fsS "http://127.0.0.1:$listen/") == mine ]]
becalm doctor becalm.yaml | grep -q "none in trouble"
way gateway
kill "$gateway" && wait "$gateway" || true

# 2. The sidecar: http_proxy, and the service's name.
cat >sidecar.yaml <<YAML
role: sidecar
listen: 127.0.0.1:$listen
admin: 127.0.0.1:$admin
services:
  files: {hosts: ["127.0.0.1:$service"], match: {host: files}}
YAML
becalm proxy --quiet --set drain.delay=0s sidecar.yaml 2>sidecar.log &
sidecar=$!
http_proxy="http://127.0.0.1:$listen" up http://files/
[[ $(http_proxy="http://127.0.0.1:$listen" curl -fsS http://files/) == mine ]]
way sidecar
kill "$sidecar" && wait "$sidecar" || true

# 3. libcurl: the program of docs/curl.md, where a compiler is.
if command -v cc >/dev/null; then
    cat >program.c <<'C'
#include <becalm/curl.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct becalm_client *client = becalm_client_load("curl.yaml", NULL, NULL);
    CURL *easy = curl_easy_init();
    (void)argc;
    curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
    curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L);
    CURLcode rc = becalm_curl_perform(easy, client);
    fprintf(stderr, "%s\n", curl_easy_strerror(rc));
    curl_easy_cleanup(easy);
    becalm_client_free(client);
    return rc != CURLE_OK;
}
C
    echo "services: {files: {match: {host: 127.0.0.1}}}" >curl.yaml
    # shellcheck disable=SC2046 # flags are meant to be split
    cc program.c -o program $(pkg-config --cflags --libs libbecalm-curl)
    [[ $(./program "http://127.0.0.1:$service/") == mine ]]
    way libcurl
fi

# 4. The shell: one that fails twice.
becalm exec --retries 5 --delay 10ms --budget walk -- sh -c 'echo x >>tries; [ "$(wc -l <tries)" -ge 3 ]' 2>exec.log
becalm exec --list-budgets | grep -q walk
way shell

# 5. Check and simulate an existing configuration.
cat >nginx.conf <<'CONF'
events {}
http { upstream pay { server 10.0.0.1:80; server 10.0.0.2:80; } server { listen 80; location / { proxy_pass http://pay; } } }
CONF
becalm import nginx.conf >imported.yaml 2>/dev/null
becalm check imported.yaml >/dev/null
becalm sim --graph imported.yaml --kill pay >/dev/null
way check

# And the Kubernetes files that the package brought.
becalm check /usr/share/becalm/kubernetes/gateway/configmap.yaml >/dev/null
if command -v kubectl >/dev/null; then
    kubectl kustomize /usr/share/becalm/kubernetes/gateway >/dev/null
fi
way kubernetes
echo "walked"
