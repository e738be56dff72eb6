// SPDX-License-Identifier: MIT

// node's http2 as a peer, in clear text by prior knowledge or with TLS.
//
//   node speaks.js serve PORT [CERT KEY]         a host: gives the body back, with a trailer behind it
//   node speaks.js ask URL COUNT BYTES [CA]      a client: COUNT requests at once on one connection, each with a body
"use strict";
const fs = require("fs");
const http2 = require("http2");
const room = { maxSessionMemory: 200 }; // MB: else it refuses streams by itself

function answer(stream, head) {
    const pieces = [];
    stream.on("error", () => {});
    stream.on("data", (piece) => pieces.push(piece));
    stream.on("end", () => {
        const body = Buffer.concat(pieces);
        stream.respond({ ":status": 200, "x-method": head[":method"] }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": String(body.length) }));
        stream.end(body);
    });
}

function serve(port, cert, key) {
    const server = cert ? http2.createSecureServer({ ...room, cert: fs.readFileSync(cert), key: fs.readFileSync(key) }) : http2.createServer(room);
    server.on("stream", answer);
    server.listen(Number(port), "127.0.0.1", () => console.log("listens"));
}

function ask(url, count, bytes, ca) {
    const client = http2.connect(url, ca ? { ...room, ca: fs.readFileSync(ca), servername: "a.test" } : room);
    const said = [];
    let left = Number(count);
    client.on("error", (error) => console.log(String(error)));
    for (let i = 0; i < Number(count); i++) {
        const stream = client.request({ ":method": "POST", ":path": "/" });
        let status;
        let length = 0;
        let sum;
        stream.on("response", (head) => (status = head[":status"]));
        stream.on("data", (piece) => (length += piece.length));
        stream.on("trailers", (fields) => (sum = fields["x-sum"]));
        stream.on("error", (error) => (sum = String(error)));
        stream.on("close", () => {
            said[i] = `${status} ${length} ${sum}`;
            if (--left === 0) {
                console.log(said.join("\n"));
                client.close();
            }
        });
        stream.end(Buffer.alloc(Number(bytes)));
    }
}

if (process.argv[2] === "serve") {
    serve(...process.argv.slice(3));
} else {
    ask(...process.argv.slice(3));
}
