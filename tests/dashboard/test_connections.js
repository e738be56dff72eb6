// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";

import { certificateNotices, certificateOf, handshakesOf, spokenOf, spokenSaid } from "../../dashboard/connections.js";

const DAY = 24 * 3600;

test("what a service speaks is the sum of its endpoints, in shares", () => {
  const service = { endpoints: [{ protocols: { clients: { h1: 3, h2: 0, grpc: 1 }, hosts: { h1: 0, h2: 9, grpc: 0 } } }, { protocols: { clients: { h1: 4, h2: 0, grpc: 0 }, hosts: { h1: 0, h2: 0, grpc: 0 } } }, {}] };
  assert.deepEqual(spokenOf(service, "clients"), { h1: 7, h2: 0, grpc: 1 });
  assert.equal(spokenSaid(spokenOf(service, "clients")), "HTTP/1 87.5 %, gRPC 12.5 %");
  assert.equal(spokenSaid(spokenOf(service, "hosts")), "HTTP/2 100 %");
  assert.equal(spokenSaid({ h1: 0, h2: 0, grpc: 0 }), "–");
});

test("handshakes: the good ways always, the others where they happened", () => {
  const of = (side, result, count) => ({ side, result, count });
  const tls = { handshakes: [of("clients", "full", 0), of("clients", "resumed", 2), of("clients", "alert", 0), of("clients", "timeout", 1), of("hosts", "full", 5), of("hosts", "resumed", 0), of("hosts", "alert", 0), of("hosts", "timeout", 0)] };
  assert.deepEqual(handshakesOf(tls), [
    { result: "full", clients: 0, hosts: 5 },
    { result: "resumed", clients: 2, hosts: 0 },
    { result: "timeout", clients: 1, hosts: 0 },
  ]);
  assert.deepEqual(handshakesOf({ handshakes: [of("hosts", "full", 5)] }), [{ result: "full", clients: null, hosts: 5 }]);
  assert.deepEqual(handshakesOf(undefined), []);
});

test("a certificate is told of a week before it expires", () => {
  const now = 1e12;
  const left = (seconds) => ({ file: "shop.pem", expires: now / 1000 + seconds });
  assert.deepEqual(certificateOf(left(7 * DAY + 1), now), { file: "shop.pem", weight: "fine", said: "● valid for 7 d 0 h" });
  assert.equal(certificateOf(left(7 * DAY), now).said, "△ expires in 7 d 0 h");
  assert.deepEqual(certificateOf(left(0), now), { file: "shop.pem", weight: "critical", said: "✗ expired 0 s ago" });
  assert.deepEqual(certificateNotices({ certificates: [left(8 * DAY), left(3600), left(-60)] }, now), [
    { weight: "warning", said: "△ The certificate shop.pem expires in 1 h 0 min." },
    { weight: "critical", said: "✗ The certificate shop.pem expired 1 min 0 s ago." },
  ]);
  assert.deepEqual(certificateNotices(undefined, now), []);
});
