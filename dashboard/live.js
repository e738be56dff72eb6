// SPDX-License-Identifier: MIT
//
// The gateway's samples, one a second, kept for a minute. Rates are means over ten seconds, because one second says little
// about quiet services. A `sample` is one row of /api/sample as an object; docs/admin.md has its names.

import { callsOf, troubleOf } from "./trouble.js";

const KEPT = 60;
const MEAN = 10;
const COUNTS = ["arrivals", "firstAttempt", "afterRetry", "failed", "attempts", "failedAttempts", "retries", "hedges"];
const REFUSALS = ["budgetEmpty", "breakerOpen", "deadline", "limited", "stopped"];
const SUMS = ["spanMs", ...COUNTS, ...REFUSALS, "shed", "opened"];

/** Rows with their columns become objects. */
export function sampleOf(columns, row) {
  const sample = {};
  for (let i = 0; i < columns.length; i++) sample[columns[i]] = row[i];
  return sample;
}

/** The sum of several samples. */
export function sumOf(samples) {
  const sum = Object.fromEntries(SUMS.map((key) => [key, 0]));
  for (const sample of samples) for (const key of SUMS) sum[key] += sample[key];
  return sum;
}

/** Rates and shares of a sum or a sample; undefined where there were no calls. */
export function figuresOf(sum) {
  const seconds = sum.spanMs / 1000;
  const calls = callsOf(sum);
  const sent = calls - sum.shed;
  const rate = (n) => (seconds > 0 ? n / seconds : undefined);
  return {
    requests: rate(sum.arrivals),
    attempts: rate(sum.attempts),
    retries: rate(sum.retries),
    failed: rate(sum.failed),
    shed: rate(sum.shed),
    refused: rate(refusedOf(sum)),
    first: calls > 0 ? sum.firstAttempt / calls : undefined,
    success: calls > 0 ? (sum.firstAttempt + sum.afterRetry) / calls : undefined,
    amplification: sent > 0 ? 1 + (sum.retries + sum.hedges) / sent : undefined,
  };
}

/** Retries that were due and were refused. */
export function refusedOf(sample) {
  return REFUSALS.reduce((sum, key) => sum + sample[key], 0);
}

/** The signs of a storm as one word. The first sign alone is a storm, and so is any pair of signs. */
export function stormOf(storm) {
  if (storm.signs.includes("retryShare") || storm.signs.length > 1) return "storm";
  return storm.signs.length === 1 ? "watch" : "calm";
}

const BREAKER_ORDER = ["CLOSED", "DISABLED", "METRICS_ONLY", "HALF_OPEN", "OPEN", "FORCED_OPEN"];

/** The worst state of several breakers. */
export function worstBreaker(states) {
  return states.reduce((worst, state) => (BREAKER_ORDER.indexOf(state) > BREAKER_ORDER.indexOf(worst) ? state : worst), "CLOSED");
}

/**
 * Samples in the order of time, as charts need them. Where the clock was set back, older samples with later times are left
 * out.
 */
export function inOrder(samples) {
  const kept = [];
  let next = Infinity;
  for (const sample of [...samples].reverse()) {
    if (sample.time >= next) continue;
    kept.push(sample);
    next = sample.time;
  }
  return kept.reverse();
}

/** The samples with a gap where one is missing for longer than a step: a line over an outage would be an invention. */
export function withGaps(samples) {
  return samples.flatMap((sample, i) => {
    const before = samples[i - 1];
    const isGap = before !== undefined && sample.time - sample.spanMs - before.time > Math.max(2000, before.spanMs);
    return isGap ? [{ time: before.time + 1, gap: true }, sample] : [sample];
  });
}

/** The samples of the last seconds, and their sum. */
class Past {
  samples = [];

  push(sample) {
    this.samples.push(sample);
    if (this.samples.length > KEPT) this.samples.shift();
  }

  get sum() {
    return sumOf(this.samples.slice(-MEAN));
  }
}

/** The share of a budget that is left; null: there is no budget, undefined: it is not known. */
export function budgetOf({ budgetLeft, budgetCap }) {
  if (budgetLeft === null) return null;
  return budgetCap ? budgetLeft / budgetCap : undefined;
}

// The emptiest of several budgets; null or undefined only where no endpoint has a budget.
function emptiest(shares) {
  const known = shares.filter((share) => share !== null && share !== undefined);
  return known.length > 0 ? Math.min(...known) : shares[0];
}

class Service {
  constructor(name) {
    this.name = name;
    this.endpoints = new Map(); // the latest sample of each endpoint
    this.pasts = new Map(); // the past of each endpoint
    this.past = new Past(); // of all endpoints together
    this.recent = { arrivals: [], attempts: [] }; // of the last minute, also of the time before this page was opened
  }

  note(columns, told) {
    Object.assign(this, { hosts: told.hosts, usable: told.usable, ejected: told.ejected, unhealthy: told.unhealthy ?? 0, storm: told.storm });
    if (told.endpoints.length === 0) return; // reloaded within this second
    this.endpoints = new Map(told.endpoints.map((each) => [each.name, { ...sampleOf(columns, each.row), ownGate: each.ownGate, overloaded: each.overloaded }]));
    this.notePasts();
    for (const [key, counts] of Object.entries(this.recent)) {
      counts.push(this.latest[key]);
      if (counts.length > KEPT) counts.shift();
    }
    const { sum } = this.past;
    const all = [...this.endpoints.values()];
    this.figures = figuresOf(sum);
    this.trouble = troubleOf({ sum, refused: refusedOf(sum), breakers: all.map((each) => each.breaker), overloaded: all.some((each) => each.overloaded), hosts: this.hosts, usable: this.usable, ejected: this.ejected, unhealthy: this.unhealthy });
  }

  notePasts() {
    const before = this.pasts;
    this.pasts = new Map();
    for (const [name, sample] of this.endpoints) {
      const past = before.get(name) ?? new Past();
      past.push(sample);
      this.pasts.set(name, past);
    }
    this.past.push(this.together());
  }

  /** One endpoint's figures, over the same time as the service's. */
  figuresOf(endpoint) {
    return figuresOf(this.pasts.get(endpoint).sum);
  }

  together() {
    const all = [...this.endpoints.values()];
    const sum = { ...sumOf(all), spanMs: all[0].spanMs };
    const p99 = all.map((each) => each.p99).filter((value) => value !== null);
    return {
      ...sum,
      inFlight: all.reduce((total, each) => total + each.inFlight, 0),
      waiting: all.reduce((total, each) => total + (each.ownGate ? each.waiting : 0), 0),
      limit: all[0].limit,
      budget: emptiest(all.map(budgetOf)),
      p99: p99.length > 0 ? Math.max(...p99) : undefined,
      breaker: worstBreaker(all.map((each) => each.breaker)),
    };
  }

  get latest() {
    return this.past.samples.at(-1);
  }
}

export class Live {
  constructor() {
    this.services = new Map();
    this.latest = null;
  }

  /** One event, or one answer of /api/sample. */
  note(event) {
    const isSameRun = this.latest !== null && event.id === this.latest.id && event.started === this.latest.started;
    if (isSameRun && event.number <= this.latest.number) return; // polled twice within a second
    const known = isSameRun ? this.services : new Map(); // samples of another process say nothing about this one
    this.services = new Map();
    for (const told of event.services) {
      const service = known.get(told.name) ?? new Service(told.name);
      service.note(event.columns, told);
      this.services.set(told.name, service);
    }
    this.latest = event;
  }

  /** Takes the answer of /api/history for all services: the minute before this page was opened. */
  noteBefore(told) {
    for (const { name, ...before } of told.services) {
      const recent = this.services.get(name)?.recent;
      if (recent) for (const key of Object.keys(recent)) recent[key] = before[key].slice(-KEPT);
    }
  }

  /** The most troubled first, then by name. */
  sorted() {
    return [...this.services.values()]
      .filter((service) => service.latest !== undefined)
      .sort((a, b) => a.trouble.rank - b.trouble.rank || a.name.localeCompare(b.name));
  }

  /** All services together. */
  figures() {
    const recent = this.sorted().map((service) => service.past.sum);
    const sum = sumOf(recent);
    return figuresOf({ ...sum, spanMs: Math.max(0, ...recent.map((each) => each.spanMs)) });
  }

  /** The number of "arrivals" or "attempts" of all services in each of the last seconds; the newest last. */
  past(key) {
    const totals = new Array(KEPT).fill(0);
    let most = 0;
    for (const { recent } of this.services.values()) {
      const counts = recent[key];
      most = Math.max(most, counts.length);
      counts.forEach((n, i) => (totals[KEPT - counts.length + i] += n));
    }
    return totals.slice(KEPT - most);
  }
}
