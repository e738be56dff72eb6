// SPDX-License-Identifier: MIT

// What Go's net/http makes of HTTP/2 with TLS.
//
//	speaks serve ADDRESS CERT KEY   a host: says the protocol, the length of the body, and a trailer behind it
//	speaks ask URL CA COUNT BYTES   a client: so many requests at once, each with a body, on one connection
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
)

func serve(address, cert, key string) {
	http.HandleFunc("/", func(out http.ResponseWriter, asked *http.Request) {
		length, err := io.Copy(io.Discard, asked.Body)
		if err != nil {
			log.Print(err)
		}
		out.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(out, "%s %d", asked.Proto, length)
		out.Header().Set("X-Sum", strconv.FormatInt(length, 10))
	})
	log.Fatal(http.ListenAndServeTLS(address, cert, key, nil))
}

func ask(url, authority string, count, length int) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "a.test"}}}
	said := make([]string, count)
	var all sync.WaitGroup
	for i := range said {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			answer, err := client.Post(url, "text/plain", bytes.NewReader(make([]byte, length)))
			if err != nil {
				said[i] = err.Error()
				return
			}
			body, err := io.ReadAll(answer.Body)
			said[i] = fmt.Sprint(answer.Proto, " ", answer.StatusCode, " ", string(body), " ", answer.Trailer.Get("X-Sum"), " ", err)
		}(i)
	}
	all.Wait()
	for _, each := range said {
		fmt.Println(each)
	}
}

func main() {
	if os.Args[1] == "serve" {
		serve(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	count, _ := strconv.Atoi(os.Args[4])
	length, _ := strconv.Atoi(os.Args[5])
	ask(os.Args[2], os.Args[3], count, length)
}
