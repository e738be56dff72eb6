<?php
// SPDX-License-Identifier: MIT

// PHP's curl: php speaks.php URL COUNT BYTES CA asks so often at once, by HTTP/2 on one connection, each time with a body.
[$url, $count, $bytes, $ca] = array_slice($argv, 1);
$all = curl_multi_init();
curl_multi_setopt($all, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
$asked = [];
for ($i = 0; $i < (int)$count; $i++) {
    $one = curl_init($url);
    curl_setopt_array($one, [
        CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_2TLS,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_POSTFIELDS => str_repeat("p", (int)$bytes),
        CURLOPT_PIPEWAIT => true,
        CURLOPT_CAINFO => $ca,
    ]);
    curl_multi_add_handle($all, $one);
    $asked[] = $one;
}
do {
    curl_multi_exec($all, $running);
    curl_multi_select($all);
} while ($running > 0);
while ($done = curl_multi_info_read($all)) {
    if ($done["result"] !== CURLE_OK) {
        echo curl_strerror($done["result"]), "\n";
    }
}
foreach ($asked as $one) {
    $version = curl_getinfo($one, CURLINFO_HTTP_VERSION) === CURL_HTTP_VERSION_2_0 ? "HTTP/2" : "HTTP/1";
    echo $version, " ", curl_getinfo($one, CURLINFO_RESPONSE_CODE), " ", strlen(curl_multi_getcontent($one)), "\n";
}
