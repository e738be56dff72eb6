// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";

import { TROUBLES, troubleOf } from "../../dashboard/trouble.js";

const NOTHING = { arrivals: 0, firstAttempt: 0, afterRetry: 0, failed: 0, retries: 0, hedges: 0, shed: 0, budgetEmpty: 0 };

/** The word for a service with these counts and this state. */
function word(counts, { refused = 0, breakers = ["CLOSED"], overloaded = false, hosts = 2, usable = 2, ejected = 0, unhealthy = 0 } = {}) {
  return troubleOf({ sum: { ...NOTHING, ...counts }, refused, breakers, overloaded, hosts, usable, ejected, unhealthy }).word;
}

test("the table is that of becalm top, in its order", () => {
  const header = fs.readFileSync(new URL("../../src/top/trouble.h", import.meta.url), "utf8");
  const rows = [...header.matchAll(/X\(\w+, (\w+), "([^"]+)",\s*"([^"]+)"\)/g)].map(([, weight, said, sentence]) => ({ weight: weight.toLowerCase(), word: said, sentence }));
  assert.ok(rows.length > 5, "the header was understood");
  assert.deepEqual(TROUBLES.map(({ weight, word: said, sentence }) => ({ weight, word: said, sentence })), rows);
});

test("each is found above its threshold and not at it", () => {
  assert.equal(word({}), "idle");
  assert.equal(word({ arrivals: 100, firstAttempt: 95, failed: 5 }), "fine");
  assert.equal(word({ arrivals: 100, firstAttempt: 94, failed: 6 }), "failing");
  assert.equal(word({ arrivals: 100, firstAttempt: 95, failed: 5, shed: 5 }), "fine");
  assert.equal(word({ arrivals: 100, firstAttempt: 94, failed: 0, shed: 6 }), "refusing");
  assert.equal(word({ arrivals: 70, firstAttempt: 70, retries: 30 }), "fine");
  assert.equal(word({ arrivals: 69, firstAttempt: 69, retries: 31 }), "many retries");
  assert.equal(word({ arrivals: 50, firstAttempt: 50, retries: 50 }), "many retries");
  assert.equal(word({ arrivals: 50, firstAttempt: 50, retries: 51 }), "retry storm");
  assert.equal(word({ arrivals: 90, firstAttempt: 90, retries: 3, budgetEmpty: 3 }, { refused: 3 }), "fine");
  assert.equal(word({ arrivals: 90, firstAttempt: 90, retries: 3, budgetEmpty: 4 }, { refused: 4 }), "budget empty");
});

test("breakers, hosts and the gate tell of themselves", () => {
  assert.equal(word({}, { breakers: ["CLOSED", "OPEN"] }), "breaker open");
  assert.equal(word({}, { breakers: ["OPEN", "FORCED_OPEN"] }), "forced open");
  assert.equal(word({}, { breakers: ["HALF_OPEN"] }), "half open");
  assert.equal(word({}, { usable: 0 }), "no usable host");
  assert.equal(word({}, { hosts: 0, usable: 0 }), "idle");
  assert.equal(word({}, { usable: 1, ejected: 1 }), "host ejected");
  assert.equal(word({}, { usable: 2, ejected: 2 }), "hosts failing");
  assert.equal(word({}, { usable: 1, unhealthy: 1 }), "host unhealthy");
  assert.equal(word({}, { usable: 2, unhealthy: 2 }), "hosts failing");
  assert.equal(word({ arrivals: 100, firstAttempt: 94, afterRetry: 6, retries: 6 }), "saved by retries");
  assert.equal(word({ arrivals: 100, firstAttempt: 95, afterRetry: 5, retries: 5 }), "fine");
  assert.equal(word({}, { overloaded: true }), "overloaded");
});
