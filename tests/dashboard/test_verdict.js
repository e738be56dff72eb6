// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";

import { stayed } from "../../dashboard/breaker.js";
import { clock } from "../../dashboard/format.js";
import { tileOfLoad, tileOfSuccess, tileOfTrouble } from "../../dashboard/services.js";
import { verdictOf } from "../../dashboard/verdict.js";

const AT = new Date(2026, 10, 16, 11, 22, 10).getTime();
const FINE = { weight: "fine", word: "fine", sign: "●", sentence: "no trouble" };
const OPEN = { weight: "critical", word: "breaker open", sign: "■", sentence: "a breaker refuses calls until its next probes succeed" };
const good = (name) => ({ name, usable: true, ejected: false, attempts: 20, failed: 0 });
const bad = (name) => ({ name, usable: true, ejected: true, attempts: 8, failed: 8 });
const endpoint = (name, breaker = {}, more = {}) => ({ name, lastSuccess: new Date(AT).toISOString(), breaker: { state: "CLOSED", ...breaker }, ...more });
const said = (seen) => verdictOf({ name: "payment", trouble: FINE, now: AT + 93000, figures: { requests: 20, first: 1, success: 1, failed: 0, retries: 0, refused: 0 }, told: { hosts: [good("a"), good("b")], endpoints: [endpoint("default")] }, ...seen });
const failed = (host, how) => ({ reason: "breaker_open", status: 503, attempt: [{ host, ...how }] });

test("a dead service is said to be dead, since when, why, and what is done about it", () => {
  const verdict = said({
    trouble: OPEN,
    figures: { requests: 20, first: 0, success: 0, failed: 20, retries: 0, refused: 0.9 },
    told: { hosts: [bad("a"), bad("b")], ejectionsIgnored: true, endpoints: [endpoint("default", { state: "OPEN", since: new Date(AT + 8000).toISOString(), probesFailed: 84 })] },
    decisions: [failed("a", { outcome: "rejected", status: 503 }), failed("b", { outcome: "rejected", status: 503 }), failed("b", { outcome: "timed_out" })],
  });
  assert.equal(verdict.sentence, `payment answers no call since ${clock(AT)}: both hosts fail with 503; the breaker is open since ${clock(AT + 8000)} and sends a probe about once a second; 84 probes failed; retries are stopped; 20 callers/s get 503.`);
  assert.equal(verdict.weight, "critical");
  assert.match(verdict.advice, /logs of its hosts/);
});

test("what is well is said in one clause, and what retries save as such", () => {
  assert.equal(said({}).sentence, "payment is healthy: 100 % of 20 requests/s are answered.");
  assert.equal(said({}).advice, "");
  assert.equal(said({ figures: { requests: 0, failed: 0, retries: 0, refused: 0 }, trouble: { ...FINE, word: "idle" } }).sentence, "payment has no requests.");
  const saved = said({ figures: { requests: 20, first: 0.72, success: 1, failed: 0, retries: 5, refused: 0 }, trouble: { ...FINE, word: "saved by retries" } });
  assert.equal(saved.sentence, "payment answers 100 % of its callers, 28 % only thanks to retries.");
  assert.match(saved.advice, /first attempts fail/);
});

test("one bad host of several, one breaker of several, and an order have their own words", () => {
  const partly = said({
    trouble: { ...OPEN, word: "failing", sentence: "more than 5 % of the calls fail" },
    figures: { requests: 20, first: 0.8, success: 0.85, failed: 3, retries: 1, refused: 2 },
    told: { hosts: [good("a"), bad("b"), good("c")], endpoints: [endpoint("default"), endpoint("charge", { state: "OPEN", probesFailed: 0 })] },
    decisions: [failed("b", { outcome: "refused" })],
  });
  assert.equal(partly.sentence, "payment answers only 85 % of its callers: 1 of 3 hosts refuses connections and gets no calls; the breaker of charge is open; most retries are stopped, 1/s are sent; 3 callers/s get 503.");
  const forced = said({ trouble: { ...OPEN, word: "forced open" }, figures: { requests: 2, first: 0, success: 0, failed: 2, retries: 0, refused: 0 }, told: { hosts: [good("a")], endpoints: [endpoint("default", { state: "FORCED_OPEN" }, { lastSuccess: undefined })] } });
  assert.equal(forced.sentence, "payment answers no call and has answered none since the gateway started: an operator has forced the breaker open; retries are stopped; 2 callers/s get no answer.");
  assert.match(forced.advice, /Release/);
});

test("only failures of the hosts that are bad say how these fail", () => {
  const trouble = { ...OPEN, word: "failing", sentence: "more than 5 % of the calls fail" };
  const figures = { requests: 20, first: 0.8, success: 0.85, failed: 3, retries: 0, refused: 0 };
  const told = { hosts: [good("a"), bad("b")], endpoints: [endpoint("default")] };
  const others = [failed("a", { outcome: "rejected", status: 500 }), failed("a", { outcome: "rejected", status: 500 }), failed("b", { outcome: "ok", status: 200 }), failed("b", { outcome: "ok", status: 200 })];
  const { sentence } = said({ trouble, figures, told, decisions: [...others, failed("b", { outcome: "rejected", status: 503 })] });
  assert.match(sentence, /: 1 of 2 hosts fails with 503 and gets no calls;/);
});

test("a host that fails its health checks is among the bad ones, and spared while another passes", () => {
  const sick = (usable) => ({ ...good("b"), usable, unhealthy: true });
  const trouble = { ...OPEN, weight: "warning", word: "host unhealthy", sentence: "a host gets no calls because it fails its health checks" };
  const spared = said({ trouble, told: { hosts: [good("a"), sick(false)], endpoints: [endpoint("default")] } });
  assert.equal(spared.sentence, "payment answers 100 % of its callers: 1 of 2 hosts fails and gets no calls.");
  const used = said({ trouble, told: { hosts: [good("a"), sick(true)], endpoints: [endpoint("default")] } });
  assert.equal(used.sentence, "payment answers 100 % of its callers: 1 of 2 hosts fails.");
});

test("fractions of a request and of a retry count", () => {
  assert.equal(said({ figures: { requests: 0.4, failed: 0, retries: 0, refused: 0 } }).sentence, "payment has 0.4 requests/s, and no call has ended yet.");
  const few = said({ trouble: { ...OPEN, word: "failing" }, figures: { requests: 1, first: 0.5, success: 0.5, failed: 0.5, retries: 0, refused: 0.5 } });
  assert.match(few.sentence, /retries are stopped/);
});

test("trouble without a clause of its own says its sentence", () => {
  const trouble = { weight: "warning", word: "overloaded", sign: "△", sentence: "more calls wait in the gate than the service serves" };
  assert.equal(said({ trouble }).sentence, "payment answers 100 % of its callers: more calls wait in the gate than the service serves.");
});

test("an outage is one row", () => {
  assert.equal(stayed({ since: AT, probesFailed: 84 }), " since then, 84 probes failed");
  assert.equal(stayed({ since: AT, until: AT + 65000, probesFailed: 1 }), " for 1 min 5 s, 1 probe failed");
  assert.equal(stayed({ since: AT, probesFailed: 0 }), " since then");
});

test("cards have colour and a sentence where their number matters", () => {
  assert.deepEqual(tileOfSuccess({ success: 0.95 }), {});
  assert.deepEqual(tileOfSuccess({}), {});
  assert.deepEqual(tileOfSuccess({ success: 0.344 }), { weight: "critical", sentence: "65.6 % of the callers get no answer" });
  assert.deepEqual(tileOfLoad({ amplification: 1.1 }), {});
  assert.equal(tileOfLoad({ amplification: 1.5 }).weight, "warning");
  assert.equal(tileOfLoad({ amplification: 3 }).weight, "critical");
  assert.deepEqual(tileOfTrouble([{ name: "payment", trouble: OPEN }]), { weight: "critical", sentence: "payment: breaker open" });
  assert.deepEqual(tileOfTrouble([{ name: "payment", trouble: FINE }]), {});
  assert.deepEqual(tileOfTrouble([]), {});
});
