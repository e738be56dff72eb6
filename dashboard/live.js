// SPDX-License-Identifier: MIT
//
// What the gateway tells every second, kept for a minute: rates are means over ten seconds, since a single one says
// little about quiet services. A `sample` is one row of /api/sample as an object; docs/admin.md has its names.

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

/** What several steps, one after the other, come to. */
export function sumOf(samples) {
  const sum = Object.fromEntries(SUMS.map((key) => [key, 0]));
  for (const sample of samples) for (const key of SUMS) sum[key] += sample[key];
  return sum;
}

/** Rates and shares of a sum or a sample; undefined where nothing happened. */
export function figuresOf(sum) {
  const seconds = sum.spanMs / 1000;
  const calls = sum.firstAttempt + sum.afterRetry + sum.failed;
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

/** Retries that were due and not made. */
export function refusedOf(sample) {
  return REFUSALS.reduce((sum, key) => sum + sample[key], 0);
}

/** How many of the storm's signs there are, in a word: the first of them alone is a storm, as is any pair. */
export function stormOf(storm) {
  if (storm.signs.includes("retryShare") || storm.signs.length > 1) return "storm";
  return storm.signs.length === 1 ? "watch" : "calm";
}

const BREAKER_ORDER = ["CLOSED", "DISABLED", "METRICS_ONLY", "HALF_OPEN", "OPEN", "FORCED_OPEN"];

/** The one state, of several breakers, that matters most. */
export function worstBreaker(states) {
  return states.reduce((worst, state) => (BREAKER_ORDER.indexOf(state) > BREAKER_ORDER.indexOf(worst) ? state : worst), "CLOSED");
}

class Service {
  constructor(name) {
    this.name = name;
    this.endpoints = new Map();
    this.past = []; // of all endpoints together, the newest last
    this.recent = { arrivals: [], attempts: [] }; // of the last minute, from before this page was opened too
  }

  note(columns, told) {
    Object.assign(this, { hosts: told.hosts, usable: told.usable, ejected: told.ejected, storm: told.storm });
    if (told.endpoints.length === 0) return; // reloaded within this second
    this.endpoints = new Map(told.endpoints.map((each) => [each.name, { ...sampleOf(columns, each.row), ownGate: each.ownGate }]));
    this.past.push(this.together());
    if (this.past.length > KEPT) this.past.shift();
    for (const [key, counts] of Object.entries(this.recent)) {
      counts.push(this.latest[key]);
      if (counts.length > KEPT) counts.shift();
    }
    this.figures = figuresOf(sumOf(this.past.slice(-MEAN)));
    this.trouble = troubleOf(this);
  }

  together() {
    const all = [...this.endpoints.values()];
    const sum = { ...sumOf(all), spanMs: all[0].spanMs };
    const budgets = all.filter((each) => each.budgetLeft !== null && each.budgetCap);
    const shares = budgets.map((each) => each.budgetLeft / each.budgetCap);
    const p99 = all.map((each) => each.p99).filter((value) => value !== null);
    return {
      ...sum,
      inFlight: all.reduce((total, each) => total + each.inFlight, 0),
      waiting: all.reduce((total, each) => total + (each.ownGate ? each.waiting : 0), 0),
      limit: all[0].limit,
      budget: shares.length > 0 ? Math.min(...shares) : undefined,
      p99: p99.length > 0 ? Math.max(...p99) : undefined,
      breaker: worstBreaker(all.map((each) => each.breaker)),
    };
  }

  get latest() {
    return this.past[this.past.length - 1];
  }
}

/** What is wrong with a service, in a word: {level 0..4, sign, word}. Levels sort the list; signs tell them without colour. */
export function troubleOf(service) {
  const now = service.latest;
  const { success, refused, shed, requests } = service.figures;
  if (now.breaker === "FORCED_OPEN") return { level: 4, sign: "■", word: "forced open" };
  if (now.breaker === "OPEN") return { level: 4, sign: "■", word: "breaker open" };
  if (stormOf(service.storm) === "storm") return { level: 4, sign: "▲", word: "storm" };
  if (success !== undefined && success < 0.9) return { level: 3, sign: "▲", word: "failing" };
  if (now.breaker === "HALF_OPEN") return { level: 3, sign: "◧", word: "half open" };
  if (shed > 0) return { level: 3, sign: "▲", word: "shedding" };
  if (refused > 0) return { level: 2, sign: "△", word: "retries refused" };
  if (service.ejected > 0) return { level: 2, sign: "△", word: "host ejected" };
  if (success !== undefined && success < 0.999) return { level: 2, sign: "△", word: "errors" };
  if (stormOf(service.storm) === "watch") return { level: 1, sign: "◇", word: "watch" };
  return requests > 0 ? { level: 0, sign: "●", word: "calm" } : { level: 0, sign: "○", word: "idle" };
}

export class Live {
  constructor() {
    this.services = new Map();
    this.latest = null;
  }

  /** One event, or one answer of /api/sample. */
  note(event) {
    if (this.latest !== null && event.time <= this.latest.time) return; // polled twice within a second
    const known = this.services;
    this.services = new Map();
    for (const told of event.services) {
      const service = known.get(told.name) ?? new Service(told.name);
      service.note(event.columns, told);
      this.services.set(told.name, service);
    }
    this.latest = event;
  }

  /** What /api/history tells of all services: the minute before this page was opened. */
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
      .sort((a, b) => b.trouble.level - a.trouble.level || a.name.localeCompare(b.name));
  }

  /** All services together. */
  figures() {
    const recent = this.sorted().map((service) => sumOf(service.past.slice(-MEAN)));
    const sum = sumOf(recent);
    return figuresOf({ ...sum, spanMs: Math.max(0, ...recent.map((each) => each.spanMs)) });
  }

  /** How many "arrivals" or "attempts" there were in each of the last seconds, of all services; the newest last. */
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
