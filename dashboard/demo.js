// SPDX-License-Identifier: MIT
//
// The demonstration's page: polls the state of the lanes twice a second, and sends the orders of its buttons.

import { Api, backoff } from "./api.js";
import { announce, attribute, text } from "./dom.js";
import { ms, number } from "./format.js";
import { Lane } from "./demo_lane.js";
import { hurtTimes, paceOf, verdictOf } from "./demo_story.js";
import { themed } from "./theme.js";

const ASK = 500;
const KEEP = 1200; // ticks: ten minutes
const FAULTS = {
  healthy: "healthy",
  slow: "five times as slow as it should be",
  errors: "failing one request in ten",
  dead: "dead: it accepts requests and answers none",
  flapping: "flapping: dead for 2 s, healthy for 2 s, and so on",
};

const api = new Api();
const lanes = [];
const byId = (id) => document.getElementById(id);
let state = null; // the latest answer, with all samples since the page was opened

/* ---- samples: an answer has only the new ones ---- */

function joined(old, fresh, known) {
  const all = Object.entries(fresh).map(([name, values]) => [name, old[name].concat(values.slice(known)).slice(-KEEP)]);
  return Object.fromEntries(all);
}

/** Two requests may be in flight at once, so an answer may repeat samples that the page has, or be older than the last one. */
function take(answer) {
  const same = state !== null && Math.abs(answer.startedMs - state.startedMs) < 1000;
  if (same && answer.ticks < state.ticks) return;
  if (same && answer.from <= state.ticks) {
    const known = state.ticks - answer.from;
    answer.lanes.forEach((lane, i) => {
      const before = state.lanes[i];
      lane.samples = joined(before.samples, lane.samples, known);
      lane.services.forEach((service, s) => (service.samples = joined(before.services[s].samples, service.samples, known)));
    });
    answer.startedMs = state.startedMs; // the server computes it for each answer, a little differently
  }
  answer.first = answer.ticks - answer.lanes[0].samples.begun.length;
  state = answer;
}

/* ---- above the lanes ---- */

function nextSentence() {
  if (state.next === undefined) return "";
  const wait = `${Math.ceil(state.nextMs / 1000)} s`;
  if (state.next === "healthy") return `The fault ends in ${wait}. Press any button to take over.`;
  return `The first fault begins by itself in ${wait}. Or press a button.`;
}

function simulationSentence(simulation) {
  if (simulation === undefined) return "";
  if (!simulation.done) return "simulating…";
  if (simulation.failed) return "the simulation failed";
  return `${simulation.seconds} s and ${number(simulation.events)} events, simulated in ${ms(simulation.tookMs)}`;
}

function show() {
  const fault = byId("fault");
  text(byId("offered"), state.offered);
  text(fault, FAULTS[state.fault]);
  attribute(fault, "data-hurt", state.fault === "healthy" ? null : "");
  text(byId("next"), nextSentence());
  text(byId("verdict"), verdictOf(state));
  const pace = paceOf(state);
  text(byId("pace"), pace);
  attribute(byId("pace"), "hidden", pace === "" ? "" : null);
  text(byId("simulated"), simulationSentence(state.simulation));
  for (const button of document.querySelectorAll("[data-fault]")) {
    attribute(button, "aria-pressed", String(button.dataset.fault === state.fault));
  }
  attribute(byId("pause"), "disabled", state.paused ? "" : null);
  attribute(byId("simulate"), "disabled", state.simulation?.done === false ? "" : null);
  for (let i = lanes.length; i < state.lanes.length; i++) {
    lanes.push(new Lane(state.lanes[i].name));
    byId("lanes").append(lanes[i].node);
    byId("strip").append(lanes[i].brief);
  }
  const most = Math.max(2 * state.offered, ...state.lanes.flatMap((lane) => lane.services.at(-1).samples.arrivals.slice(-180).map((n) => (n * 1000) / state.tickMs)));
  lanes.forEach((lane, i) => lane.update(state, i, { most, hurt: hurtTimes(state.changes, state.ticks) }));
}

/* ---- the link ---- */

function showLink(word, sign, said) {
  const link = byId("link");
  if (link.dataset.link === word) return;
  link.dataset.link = word;
  text(link.querySelector(".sign"), sign);
  text(byId("link-word"), said);
  announce(said);
}

async function ask() {
  take(await api.get(`/api/demo?since=${state === null ? 0 : state.ticks}`));
  show();
}

async function follow() {
  for (let failures = 0; ; ) {
    let wait = ASK;
    try {
      await ask();
      failures = 0;
      showLink("live", "●", "live");
    } catch (problem) {
      if (problem.status === undefined) throw problem; // a bug of this page
      wait = ASK + backoff(failures++);
      showLink("lost", "✗", "the demo has ended");
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}

/* ---- orders ---- */

/** Where the server refuses an order, its reason is shown beside the buttons. */
async function order(path) {
  let refused = "";
  try {
    await api.post(path);
    await ask();
  } catch (problem) {
    refused = problem.message;
    announce(refused);
  }
  text(byId("refused"), refused);
}

themed(byId("theme"));
for (const button of document.querySelectorAll("[data-fault]")) {
  button.addEventListener("click", () => order(`/api/fault/${button.dataset.fault}`));
}
byId("pause").addEventListener("click", () => order("/api/pause"));
byId("simulate").addEventListener("click", () => order("/api/simulation"));
follow();
