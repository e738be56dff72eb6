// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";

import { Live, budgetOf, figuresOf, inOrder, sumOf, withGaps } from "../../dashboard/live.js";

const ZERO = {
  time: 0, spanMs: 1000, arrivals: 0, firstAttempt: 0, afterRetry: 0, failed: 0, attempts: 0, failedAttempts: 0, retries: 0, hedges: 0, budgetEmpty: 0,
  breakerOpen: 0, deadline: 0, limited: 0, stopped: 0, shed: 0, opened: 0, inFlight: 0, waiting: 0, limit: null, budgetLeft: 5, budgetCap: 10, p99: null, breaker: "CLOSED",
};
const columns = Object.keys(ZERO);

/** One sample of the gateway; `counts` by endpoint of its only service. */
function event(number, counts, { time = number * 1000, id = "ab", started = 1, name = "a" } = {}) {
  const endpoints = Object.entries(counts).map(([endpoint, each]) => ({ name: endpoint, ownGate: true, overloaded: false, row: Object.values({ ...ZERO, time, ...each }) }));
  return { number, time, id, started, reloads: 0, columns, services: [{ name, hosts: 1, usable: 1, ejected: 0, storm: { signs: [] }, endpoints }] };
}

test("a second counts once, however often it is told, and whatever the clock says", () => {
  const live = new Live();
  live.note(event(1, { default: { arrivals: 5 } }));
  live.note(event(1, { default: { arrivals: 5 } }));
  live.note(event(2, { default: { arrivals: 5 } }, { time: 400 })); // set back
  const [service] = live.sorted();
  assert.equal(service.past.samples.length, 2);
  assert.equal(service.figures.requests, 5);
  assert.equal(live.latest.time, 400);
});

test("another process begins anew, though its numbers are lower", () => {
  const live = new Live();
  live.note(event(700, { default: { arrivals: 5 } }));
  live.note(event(2, { default: { arrivals: 1 } }, { started: 9 }));
  const [service] = live.sorted();
  assert.equal(service.past.samples.length, 1);
  assert.equal(service.figures.requests, 1);
});

test("an endpoint's figures are means of ten seconds, as the service's are", () => {
  const live = new Live();
  for (let i = 1; i <= 12; i++) live.note(event(i, { default: { arrivals: 1 }, read: { arrivals: i === 12 ? 100 : 0 } }));
  const [service] = live.sorted();
  assert.equal(service.figuresOf("read").requests, 10);
  assert.equal(service.figuresOf("default").requests, 1);
  assert.equal(service.figures.requests, 11);
});

test("a service that a reload took away is gone", () => {
  const live = new Live();
  live.note(event(1, { default: {} }));
  live.note(event(2, { default: {} }, { name: "b" }));
  assert.deepEqual([...live.services.keys()], ["b"]);
});

test("no budget is not an empty one, nor an unknown one", () => {
  assert.equal(budgetOf({ budgetLeft: null, budgetCap: null }), null);
  assert.equal(budgetOf({ budgetLeft: 0, budgetCap: 10 }), 0);
  assert.equal(budgetOf({ budgetLeft: 5, budgetCap: 0 }), undefined);
  const live = new Live();
  live.note(event(1, { default: { budgetLeft: null, budgetCap: null } }));
  assert.equal(live.sorted()[0].latest.budget, null);
  live.note(event(2, { default: { budgetLeft: null, budgetCap: null }, read: { budgetLeft: 1, budgetCap: 4 } }));
  assert.equal(live.sorted()[0].latest.budget, 0.25);
});

test("what a clock that was set back made double is drawn once", () => {
  const times = (...all) => inOrder(all.map((time) => ({ time }))).map(({ time }) => time);
  assert.deepEqual(times(), []);
  assert.deepEqual(times(1, 2, 3), [1, 2, 3]);
  assert.deepEqual(times(10, 11, 12, 3, 4), [3, 4]);
  assert.deepEqual(times(1, 2, 8, 3, 3, 4), [1, 2, 3, 4]);
});

test("an outage is a gap, and a second that was not polled is none", () => {
  const gaps = (...pairs) => withGaps(pairs.map(([time, spanMs]) => ({ time, spanMs }))).map((each) => (each.gap ? "gap" : each.time));
  assert.deepEqual(gaps([1000, 1000], [2000, 1000], [4000, 1000]), [1000, 2000, 4000]);
  assert.deepEqual(gaps([1000, 1000], [60000, 1000], [61000, 1000]), [1000, "gap", 60000, 61000]);
  assert.deepEqual(gaps([180000, 180000], [360000, 180000], [361000, 1000]), [180000, 360000, 361000]);
});

test("shares are of what was sent, and unknown where nothing was", () => {
  assert.equal(figuresOf(sumOf([])).success, undefined);
  const figures = figuresOf(sumOf([{ ...ZERO, firstAttempt: 6, afterRetry: 2, failed: 2, shed: 2, retries: 4 }]));
  assert.deepEqual([figures.first, figures.success, figures.amplification], [0.6, 0.8, 1.5]);
});
