// SPDX-License-Identifier: MIT
//
// The sentences of the demonstration's page about its lanes. Nothing here touches the page.

import { NONE, count, number, percent } from "./format.js";

const NAMES = ["Naive retries", "Becalm"];
const PLURAL = [true, false];

const seconds = (state, ticks) => `${((ticks * state.tickMs) / 1000).toFixed(1)} s`;

/** The times of faults: [{from, to, fault}], in ticks. */
export function hurtTimes(changes, ticks) {
  return changes
    .map((change, i) => ({ from: change.tick, to: changes[i + 1]?.tick ?? ticks, fault: change.fault }))
    .filter((time) => time.fault !== "healthy" && time.to > time.from);
}

/** How a lane came through the latest fault, for its tile: [word, small print, level]. */
export function afterOf(state, lane) {
  const since = seconds(state, state.ticks - state.healedTick);
  const back = seconds(state, lane.recoveredTick - state.healedTick);
  switch (lane.state) {
    case "hurt":
      return [NONE, "heal back first", null];
    case "healed":
      return ["…", "just healed", null];
    case "stopped":
      return ["no users", "known when the users are back", null];
    case "down":
      return ["still down", `${since} after healing`, "bad"];
    case "recovering":
      return ["recovering", `${since} after healing`, "warn"];
    case "back":
      return ["back", lane.afterStop ? `after all users were stopped, ${back} after healing` : `${back} after healing: 95 % success`, "good"];
    case "unharmed":
      return ["not down", "success was never below 95 %", "good"];
    default:
      return [NONE, "choose a fault, then heal back", null];
  }
}

/** The success of a lane now, for its tile: a share, or the reason why there is none. */
export function successOf(lane) {
  if (lane.success !== null) return percent(lane.success);
  return lane.waiting > 0 ? "waiting" : "no calls";
}

function fateOf(state, lane, i) {
  const is = PLURAL[i] ? "are" : "is";
  const was = PLURAL[i] ? "were" : "was";
  const since = `${seconds(state, state.ticks - state.healedTick)} after back was healed`;
  const back = seconds(state, lane.recoveredTick - state.healedTick);
  switch (lane.state) {
    case "down":
      return `${NAMES[i]} ${is} still down, ${since}`;
    case "recovering":
      return `${NAMES[i]} ${is} recovering, ${since}`;
    case "unharmed":
      return `${NAMES[i]} ${was} not down at all`;
    case "back":
      if (lane.afterStop) return `${NAMES[i]} ${was} back only after all users had been stopped`;
      return `${NAMES[i]} ${was} back after ${back}`;
    default:
      return `Whether ${NAMES[i]} ${is} back is not known yet`;
  }
}

/** The headline: how both lanes came through. */
export function verdictOf(state) {
  const { lanes } = state;
  if (state.paused) {
    const held = lanes.reduce((all, lane) => all + lane.holds, 0);
    const left = held === 0 ? "No request is in flight any more" : `${count(held)} requests are still in flight`;
    return `All users have stopped. ${left}. The users come back 2 s after the last request has ended.`;
  }
  if (state.hurtTick === undefined) return "Both lanes are healthy. Choose a fault for back, then heal it, and watch which lane recovers.";
  if (state.healedTick === undefined) {
    const each = lanes.map((lane) => number(lane.factor ?? undefined));
    return `Since the fault began, back got ${each[0]} requests for each call with naive retries, ${each[1]} with Becalm.`;
  }
  if (lanes.every((lane) => lane.state === "healed")) return "Healed. Which lane recovers?";
  if (lanes.every((lane) => lane.state === "unharmed")) return "Neither lane went down: retries are made for a few failures.";
  return `${lanes.map((lane, i) => fateOf(state, lane, i)).join(". ")}.`;
}

/** A warning where this machine has been too slow for both lanes since the fault began; else empty. */
export function paceOf(state) {
  if (!state.slow) return "";
  const late = `${number(state.lateMs / 1000)} s late in ${count(state.slowTicks)} of ${count(state.paceTicks)} half seconds`;
  return `This machine is too busy for the demo: services ran up to ${late}. Calls fail because of that in both lanes, whatever their policy.`;
}

/** The calls and retries to a service that its gateway refused since the fault began, most frequent reason first: "400 shed, 58 limit". */
export function refusalsOf(service) {
  const all = Object.entries(service.refusedBy).sort(([, a], [, b]) => b - a);
  return all.length === 0 ? "nothing" : all.map(([reason, times]) => `${count(times)} ${reason.replaceAll("_", " ")}`).join(", ");
}

/** The simulation at these ticks: its steps are seconds. */
export function simulatedOf(state, index, ticks, perTick) {
  const simulation = state.simulation;
  if (simulation?.lanes === undefined) return { load: ticks.map(() => null), success: ticks.map(() => null) };
  const lane = simulation.lanes[index];
  const second = (tick) => Math.floor((tick - simulation.fromTick) / perTick);
  const at = (values, tick) => (second(tick) < 0 ? null : (values[second(tick)] ?? null));
  return {
    load: ticks.map((tick) => at(lane.arrivals, tick)),
    success: ticks.map((tick) => {
      const begun = at(lane.begun, tick);
      return begun === null || begun === 0 ? null : at(lane.good, tick) / begun;
    }),
  };
}
