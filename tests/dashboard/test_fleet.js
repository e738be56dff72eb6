// SPDX-License-Identifier: MIT
import assert from "node:assert/strict";
import { test } from "node:test";

import { ranked, ratioSaid, storeSaid, together, troublesSaid } from "../../dashboard/fleet.js";

const one = (id, more) => ({ id, policy: "p", version: "1", callsPerSecond: 10, retriesPerSecond: 1, sharedCallsPerSecond: 10, sharedRetriesPerSecond: 1, budgets: 1, degraded: 0, toldSecondsAgo: 1, ...more });
const order = (...instances) => ranked(instances).map(({ id, state }) => `${id} ${state}`);

test("the worst come first: silent, degraded, another policy or version, then by their retries", () => {
  const all = [
    one("a"),
    one("b", { retriesPerSecond: 2 }),
    one("c", { version: "2" }),
    one("d", { policy: "q" }),
    one("e", { degraded: 1 }),
    one("f", { toldSecondsAgo: 5 }),
    one("g", { toldSecondsAgo: 7, degraded: 1 }),
    one("h", { callsPerSecond: 0, retriesPerSecond: 0 }),
  ];
  assert.deepEqual(order(...all), ["g silent", "f silent", "e degraded", "c differs", "d differs", "b fine", "a fine", "h fine"]);
  assert.equal(troublesSaid(ranked(all)), "2 silent, 1 degraded, 2 different");
});

test("five seconds are silent, less is not; where all are alike, or each is another, nobody differs", () => {
  assert.deepEqual(order(one("a", { toldSecondsAgo: 4.999 })), ["a fine"]);
  assert.deepEqual(order(one("a", { policy: "x" }), one("b", { policy: "y" })), ["a fine", "b fine"]);
  assert.equal(troublesSaid(ranked([one("a")])), "");
  assert.deepEqual(order(), []);
});

test("all together are held against what is allowed", () => {
  const store = { instances: [one("a", { callsPerSecond: 1000, sharedRetriesPerSecond: 3 }), one("b", { sharedCallsPerSecond: 30 }), one("dead", { toldSecondsAgo: 9, sharedCallsPerSecond: 900 })], budgets: [{ percent: 20 }, { percent: 5 }] };
  assert.deepEqual(together(store), { calls: 40, retries: 4, ratio: 0.1, lowest: 0.05, highest: 0.2 });
  assert.equal(together({ instances: [], budgets: [{ percent: 20 }] }).ratio, undefined);
  assert.deepEqual(ratioSaid({ ratio: 0.1, lowest: 0.2, highest: 0.2 }), { sentence: "of 20 % allowed" });
  assert.deepEqual(ratioSaid({ ratio: 0.219, lowest: 0.05, highest: 0.2 }), { sentence: "of 5 % to 20 % allowed" });
  assert.deepEqual(ratioSaid({ ratio: 0.23, lowest: 0.2, highest: 0.2 }), { weight: "critical", sentence: "more than the 20 % allowed" });
  assert.deepEqual(ratioSaid({ ratio: undefined, lowest: 0.2, highest: 0.2 }), { sentence: "of 20 % allowed" });
});

test("a store is up or away, with its error and the age of its answer", () => {
  assert.deepEqual(storeSaid({ up: true, answeredSecondsAgo: 0.25 }), { word: "up", weight: null, sentence: "answered 250 ms ago" });
  assert.deepEqual(storeSaid({ up: true, error: "NOPERM", answeredSecondsAgo: 1 }), { word: "up", weight: "warning", sentence: "NOPERM; answered 1 s ago" });
  assert.deepEqual(storeSaid({ up: false, error: "refused", answeredSecondsAgo: 90 }), { word: "away", weight: "critical", sentence: "refused; answered 1 min 30 s ago" });
  assert.deepEqual(storeSaid({ up: false }), { word: "away", weight: "critical", sentence: "never answered" });
});
