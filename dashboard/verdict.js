// SPDX-License-Identifier: MIT
//
// The state of a service in one sentence: the answers that its callers get, since when, the state of its hosts, and Becalm's
// reaction. Numbers are of the last ten seconds (live.js), states are those of /api/state, and the words for failures come
// from the latest decisions.

import { attribute, h, text } from "./dom.js";
import { clock, duration, number, percent, perSecond, plural } from "./format.js";

const ENOUGH = 0.95; // the share of answered calls below which trouble.js says `failing`
const SAYS = { refused: "refuse connections", timed_out: "do not answer in time", tls: "fail the TLS handshake", broken: "break connections", late: "do not answer in time" };
const SAYS_ONE = { refused: "refuses connections", timed_out: "does not answer in time", tls: "fails the TLS handshake", broken: "breaks connections", late: "does not answer in time" };
const GOOD = ["ok", "permanent", "cancelled"];

/** The most frequent of these words; undefined: there are none. */
function mostly(values) {
  const counts = new Map();
  for (const value of values) if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];
}

/** {weight, sign, sentence, advice} of a service. */
export function verdictOf({ name, figures, trouble, told, decisions = [], now }) {
  const open = openOf(told.endpoints);
  const bad = failingOf(told.hosts);
  const clauses = [hostsSaid(told, bad, decisions), breakerSaid(told.endpoints, open, now), retriesSaid(figures, open), callersSaid(figures, decisions)];
  const isWell = trouble.weight === "fine" && (figures.success ?? 1) >= ENOUGH;
  const rest = isWell && bad.length === 0 ? [] : clauses.filter(Boolean);
  const head = headSaid(name, figures, told.endpoints, isWell);
  return {
    weight: trouble.weight,
    sign: trouble.sign,
    sentence: rest.length > 0 ? `${head}: ${rest.join("; ")}.` : `${head}${isWell || trouble.word === "idle" ? "" : `: ${trouble.sentence}`}.`,
    advice: adviceOf(trouble, told, bad),
  };
}

function headSaid(name, { requests, first, success }, endpoints, isWell) {
  if (success === undefined) return requests > 0 ? `${name} has ${number(requests)} requests/s, and no call has ended yet` : `${name} has no requests`;
  if (success === 0) return `${name} answers no call ${sinceSaid(endpoints)}`;
  if (success < ENOUGH) return `${name} answers only ${percent(success)} of its callers`;
  if (!isWell) return `${name} answers ${percent(success)} of its callers`;
  if (success - first > 0.05) return `${name} answers ${percent(success)} of its callers, ${percent(success - first)} only thanks to retries`;
  return `${name} is healthy: ${percent(success)} of ${number(requests)} requests/s are answered`;
}

function sinceSaid(endpoints) {
  const times = endpoints.map((each) => each.lastSuccess).filter((time) => time !== undefined);
  return times.length === 0 ? "and has answered none since the gateway started" : `since ${clock(Math.max(...times.map((time) => new Date(time).getTime())))}`;
}

/* ---- hosts ---- */

function failingOf(hosts) {
  return hosts.filter((host) => !host.usable || host.ejected || host.unhealthy || (host.attempts > 0 && host.failed / host.attempts >= 0.5));
}

function hostsSaid(told, bad, decisions) {
  const all = told.hosts.length;
  if (all === 0) return "the service has no host";
  if (bad.length === 0) return null;
  const names = new Set(bad.map((host) => host.name));
  const attempts = decisions.flatMap((each) => each.attempt ?? []).filter((each) => !GOOD.includes(each.outcome) && names.has(each.host));
  const status = mostly(attempts.map((each) => each.status));
  const outcome = mostly(attempts.map((each) => each.outcome));
  const one = bad.length === 1;
  const how = status !== undefined ? `${one ? "fails" : "fail"} with ${status}` : ((one ? SAYS_ONE : SAYS)[outcome] ?? (one ? "fails" : "fail"));
  if (all === 1) return `its host ${how}`;
  if (bad.length === all) return `${all === 2 ? "both" : `all ${all}`} hosts ${how}`;
  const spared = bad.every((host) => (host.ejected && !told.ejectionsIgnored) || (host.unhealthy && !host.usable));
  return `${bad.length} of ${all} hosts ${how}${spared ? ` and ${one ? "gets" : "get"} no calls` : ""}`;
}

/* ---- Becalm's reaction ---- */

function openOf(endpoints) {
  return endpoints.filter((each) => ["OPEN", "HALF_OPEN", "FORCED_OPEN"].includes(each.breaker.state));
}

function breakerSaid(endpoints, open, now) {
  if (open.length === 0) return null;
  const forced = open.find((each) => each.breaker.state === "FORCED_OPEN");
  const of = (each) => (endpoints.length > 1 && open.length < endpoints.length ? `the breaker of ${each.name}` : "the breaker");
  if (forced) return `an operator has forced ${of(forced)} open`;
  const { breaker } = open[0];
  const since = breaker.since === undefined ? undefined : new Date(breaker.since).getTime();
  const asked = breaker.probesFailed ?? 0;
  const every = asked >= 3 && since !== undefined ? ` and sends a probe ${everySaid((now - since) / asked)}; ${plural(asked, "probe")} failed` : asked > 0 ? `; ${plural(asked, "probe")} failed` : "";
  return `${of(open[0])} is ${breaker.state === "HALF_OPEN" && asked === 0 ? "half open" : "open"}${since === undefined ? "" : ` since ${clock(since)}`}${every}`;
}

function everySaid(milliseconds) {
  return milliseconds < 1500 ? "about once a second" : `about every ${duration(milliseconds)}`;
}

function retriesSaid({ retries, refused }, open) {
  if (retries > 0) return refused > retries ? `most retries are stopped, ${perSecond(retries)} are sent` : `${number(retries)} retries/s are sent`;
  return refused > 0 || open.length > 0 ? "retries are stopped" : null;
}

function callersSaid({ failed }, decisions) {
  if (!(failed > 0)) return null;
  const status = mostly(decisions.filter((each) => !["ok", "permanent"].includes(each.reason)).map((each) => each.status));
  return `${number(failed)} callers/s get ${status ?? "no answer"}`;
}

function adviceOf(trouble, told, bad) {
  if (trouble.word === "forced open") return "Release the breaker when the service may get calls again.";
  if (bad.length > 0 && bad.length === told.hosts.length) return "Look at the logs of its hosts: Becalm limits the load until they answer.";
  if (bad.length > 0) return "Look at the failing hosts; the other hosts carry the load.";
  if (trouble.weight === "fine") return trouble.word === "saved by retries" ? "Callers notice nothing. Find out why first attempts fail before more of them do." : "";
  return "The latest decisions below give the reason for each call.";
}

export class VerdictPanel {
  constructor() {
    this.sign = h("span", { class: "sign", "aria-hidden": "true" });
    this.sentence = h("strong", { "data-figure": "verdict" });
    this.advice = h("p", { class: "note" });
    this.node = h("section", { class: "verdict", "aria-label": "Verdict" }, h("p", {}, this.sign, " ", this.sentence), this.advice);
  }

  update({ weight, sign, sentence, advice }) {
    attribute(this.node, "data-weight", weight);
    text(this.sign, sign);
    text(this.sentence, sentence);
    text(this.advice, advice);
    this.advice.hidden = advice === "";
  }
}
