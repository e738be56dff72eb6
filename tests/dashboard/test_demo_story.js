// SPDX-License-Identifier: MIT
//
// The sentences of the demonstration's page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { afterOf, hurtTimes, paceOf, refusalsOf, simulatedOf, successOf, verdictOf } from "../../dashboard/demo_story.js";

/** Two lanes, 20 s after the start: hurt at tick 10, healed at tick 20. */
function story(naive, becalm, more = {}) {
  const lane = { factor: 1, success: 1, waiting: 0, holds: 0, afterStop: false };
  return { tickMs: 500, steadyTicks: 4, ticks: 40, hurtTick: 10, healedTick: 20, paused: false, lanes: [{ ...lane, ...naive }, { ...lane, ...becalm }], ...more };
}

test("back was hurt from each fault to the next change", () => {
  assert.deepEqual(hurtTimes([], 40), []);
  const changes = [
    { tick: 10, fault: "dead" },
    { tick: 20, fault: "healthy" },
    { tick: 30, fault: "slow" },
  ];
  assert.deepEqual(hurtTimes(changes, 40), [
    { from: 10, to: 20, fault: "dead" },
    { from: 30, to: 40, fault: "slow" },
  ]);
  assert.deepEqual(hurtTimes([{ tick: 40, fault: "dead" }], 40), [], "it lasted for nothing");
});

test("before, during and just after the fault nobody is called back", () => {
  const calm = story({ state: "calm" }, { state: "calm" }, { hurtTick: undefined, healedTick: undefined });
  assert.match(verdictOf(calm), /^Both lanes are healthy\./);
  const hurt = story({ state: "hurt", factor: 26.94 }, { state: "hurt", factor: null }, { healedTick: undefined });
  assert.equal(verdictOf(hurt), "Since the fault began, back got 26.9 requests for each call with naive retries, – with Becalm.");
  assert.equal(verdictOf(story({ state: "healed" }, { state: "healed" })), "Healed. Which lane recovers?");
});

test("who is down, recovering or back is said of each lane", () => {
  assert.equal(
    verdictOf(story({ state: "down" }, { state: "back", recoveredTick: 23 })),
    "Naive retries are still down, 10.0 s after back was healed. Becalm was back after 1.5 s.",
  );
  assert.equal(
    verdictOf(story({ state: "recovering" }, { state: "unharmed", recoveredTick: 20 })),
    "Naive retries are recovering, 10.0 s after back was healed. Becalm was not down at all.",
  );
});

test("that users were stopped is said, while they are and after", () => {
  const stopped = story({ state: "stopped", holds: 1200 }, { state: "stopped", holds: 34 }, { paused: true });
  assert.equal(verdictOf(stopped), "All users have stopped. 1,234 requests are still in flight. The users come back 2 s after the last request has ended.");
  const quiet = story({ state: "stopped" }, { state: "stopped" }, { paused: true });
  assert.match(verdictOf(quiet), /No request is in flight any more/);
  assert.equal(
    verdictOf(story({ state: "back", recoveredTick: 36, afterStop: true }, { state: "back", recoveredTick: 22 })),
    "Naive retries were back only after all users had been stopped. Becalm was back after 1.0 s.",
  );
});

test("a machine that is too busy is named, and one that keeps up is not", () => {
  assert.equal(paceOf({ lateMs: 101, slowTicks: 1, paceTicks: 40, slow: false }), "");
  assert.equal(paceOf({}), "", "an older program");
  assert.match(paceOf({ lateMs: 1234.5, slowTicks: 7, paceTicks: 40, slow: true }), /^This machine is too busy for the demo: services ran up to 1\.2 s late in 7 of 40 half seconds\./);
});

test("a fault that brings nobody down is said to", () => {
  assert.match(verdictOf(story({ state: "unharmed", recoveredTick: 20 }, { state: "unharmed", recoveredTick: 20 })), /^Neither lane went down/);
});

test("the tile after healing has the same words", () => {
  const said = (lane) => afterOf(story(lane, {}), story(lane, {}).lanes[0]);
  assert.deepEqual(said({ state: "down" }), ["still down", "10.0 s after healing", "bad"]);
  assert.deepEqual(said({ state: "recovering" }).slice(0, 1), ["recovering"]);
  assert.deepEqual(said({ state: "stopped" }).slice(0, 1), ["no users"]);
  assert.match(said({ state: "back", recoveredTick: 22 })[1], /^1\.0 s after healing/);
  assert.match(said({ state: "back", recoveredTick: 36, afterStop: true })[1], /^after all users were stopped, 8\.0 s/);
  assert.deepEqual(said({ state: "unharmed", recoveredTick: 20 }).slice(0, 1), ["not down"]);
  assert.deepEqual(said({ state: "calm" })[0], said({ state: "hurt" })[0]);
});

test("without an answer there is no success, but somebody who waits, or nobody", () => {
  assert.equal(successOf({ success: 0.5, waiting: 7 }), "50 %");
  assert.equal(successOf({ success: 0, waiting: 7 }), "0 %");
  assert.equal(successOf({ success: null, waiting: 7 }), "waiting");
  assert.equal(successOf({ success: null, waiting: 0 }), "no calls");
});

test("refusals are listed by reason, the most frequent first", () => {
  assert.equal(refusalsOf({ refusedBy: {} }), "nothing");
  assert.equal(refusalsOf({ refusedBy: { limit: 3, breaker_open: 1200 } }), "1,200 breaker open, 3 limit");
});

test("the simulation's seconds are laid over ticks, from the tick that it begins with", () => {
  const lanes = [{ arrivals: [10, 20], begun: [4, 0], good: [1, 0] }];
  const none = { load: [null, null], success: [null, null] };
  assert.deepEqual(simulatedOf({}, 0, [0, 1], 2), none);
  assert.deepEqual(simulatedOf({ simulation: { done: false, fromTick: 0 } }, 0, [0, 1], 2), none);
  const over = simulatedOf({ simulation: { fromTick: 6, lanes } }, 0, [5, 6, 7, 8, 9, 10], 2);
  assert.deepEqual(over.load, [null, 10, 10, 20, 20, null]);
  assert.deepEqual(over.success, [null, 0.25, 0.25, null, null, null]);
});
