// SPDX-License-Identifier: MIT
//
// One service, one of its endpoints at a time: its charts for minutes or hours, its breaker with its orders, its hosts, what
// was counted since the start, and its latest decisions.

import { BreakerPanel } from "./breaker.js";
import { Bars, TimeChart } from "./charts.js";
import { DecisionList } from "./decisions.js";
import { fill, h, text, wide } from "./dom.js";
import { NONE, clock, count, ms, number, percent, perSecond, times, words } from "./format.js";
import { figuresOf, sampleOf, stormOf, sumOf as together } from "./live.js";
import { badge } from "./services.js";
import { StormPanel } from "./storm.js";

const RANGES = { "5m": "5 minutes", "1h": "1 hour", "6h": "6 hours", "24h": "24 hours" };
const REFRESH = { "1h": 10000, "6h": 60000, "24h": 60000 };
const LIVE_MS = 300000;
const MEAN_STEPS = 5; // seconds, of shares
const LEVELS = ["closed", "half open", "open"];
const LEVEL_OF = { CLOSED: 0, DISABLED: 0, METRICS_ONLY: 0, HALF_OPEN: 1, OPEN: 2, FORCED_OPEN: 2 };

const rate = (key) => (sample) => (sample.spanMs > 0 ? (1000 * sample[key]) / sample.spanMs : null);
const figure = (key) => (sample, recent) => figuresOf(recent)[key] ?? null; // a share of one quiet second says nothing
const value = (key) => (sample) => sample[key];

/** Each chart: how it looks, and where its lines come from. */
const CHARTS = [
  {
    options: {
      title: "Requests and retries", note: "A gap between sent and requests is load that retries add.", format: perSecond, most: 1,
      series: [{ label: "requests", slot: 1, fill: true }, { label: "sent", slot: 2 }, { label: "retries", slot: 3 }],
    },
    lines: [rate("arrivals"), rate("attempts"), rate("retries")],
  },
  {
    options: {
      title: "Success", note: "What retries save is between the two lines.", format: percent, most: 1,
      series: [{ label: "after retries", slot: 2, fill: true }, { label: "at the first attempt", slot: 1 }],
    },
    lines: [figure("success"), figure("first")],
  },
  {
    options: {
      title: "Load multiplied by", note: "Attempts per call that sent any; 1.00× is no retry at all.", format: times, most: 1.5, least: 1,
      series: [{ label: "amplification", slot: 3, fill: true }],
    },
    lines: [figure("amplification")],
  },
  {
    options: {
      title: "Budget", note: "Retries that could be paid for now. Empty: no retry until successes fill it.", format: number, most: 1,
      series: [{ label: "left", slot: 1, fill: true }, { label: "at most", slot: 4 }],
    },
    lines: [value("budgetLeft"), value("budgetCap")],
  },
  {
    options: {
      title: "Retries refused", note: "Due, and not made: by the reason.", format: perSecond, most: 0.2,
      series: [
        { label: "budget empty", slot: 3 }, { label: "breaker open", slot: 2 }, { label: "deadline", slot: 1 },
        { label: "limit", slot: 4 }, { label: "told to stop", slot: 5 },
      ],
    },
    lines: [rate("budgetEmpty"), rate("breakerOpen"), rate("deadline"), rate("limited"), rate("stopped")],
  },
  {
    options: {
      title: "Breaker", note: "Open: calls are refused at once, and the service has quiet.", levels: LEVELS,
      series: [{ label: "state", slot: 3, fill: true }],
    },
    lines: [(sample) => (sample.opened > 0 ? 2 : LEVEL_OF[sample.breaker])],
  },
  {
    options: {
      title: "In flight and queue", note: "Attempts at once against the limit, calls that wait for a slot, calls shed.", format: number, most: 5,
      series: [{ label: "in flight", slot: 1, fill: true }, { label: "limit", slot: 4, far: true }, { label: "waiting", slot: 3 }, { label: "shed per second", slot: 5 }],
    },
    lines: [value("inFlight"), value("limit"), value("waiting"), rate("shed")],
  },
  {
    options: {
      title: "Latency", note: "Of first attempts, the last 10 to 20 seconds: half, 95 % and 99 % were faster.", format: ms, most: 1,
      series: [{ label: "p50", slot: 1 }, { label: "p95", slot: 2 }, { label: "p99", slot: 3 }],
    },
    lines: [value("p50"), value("p95"), value("p99")],
  },
];

const TOTALS = [
  ["arrivals", "Requests", (t) => count(t.arrivals)],
  ["first", "Calls that succeeded at the first attempt", (t) => count(sumOf(t.calls.first_attempt))],
  ["after", "Calls that succeeded after retries", (t) => count(sumOf(t.calls.after_retry))],
  ["failed", "Calls that failed", (t) => count(sumOf(t.calls.failed))],
  ["attempts", "Attempts sent to hosts", (t) => count(sumOf(t.attempts))],
  ["retries", "Retries among them", (t) => count(sumOf(t.retries))],
  ["hedges", "Hedges sent, and won", (t) => `${count(t.hedges.sent)}, ${count(t.hedges.won)}`],
  ["amplification", "Load multiplied by", (t) => times(t.amplification)],
  ["redone", "Sent again on a fresh connection, uncounted", (t) => count(t.redone)],
];

function sumOf(counts) {
  return Object.values(counts).reduce((sum, each) => sum + each, 0);
}

const ENDPOINT_COLUMNS = ["Endpoint", "Requests", "Retries", "First attempt", "After retries", "Load", "Budget left", "Breaker", "In flight"];

export class ServiceView {
  constructor(page, name, query) {
    this.page = page;
    this.name = name;
    this.title = name;
    this.told = null; // of /api/state
    this.samples = [];
    this.badge = badge();
    this.storm = new StormPanel();
    this.charts = CHARTS.map((each) => new TimeChart(each.options));
    this.delays = new Bars({ title: "Waits before retries", note: "Spread out: jitter works. One bar alone: callers retry in step." });
    this.breaker = new BreakerPanel(page, name, () => this.refresh());
    this.decisions = new DecisionList(page, { service: name, limit: 8, compact: true });
    this.build();
    this.choose(query);
  }

  build() {
    this.missing = h("p", { class: "empty", hidden: true }, "This service is not in the policy.");
    this.endpoints = h("tbody");
    this.hosts = h("tbody");
    this.totals = h("dl", { class: "totals" });
    this.reasons = h("div", { class: "reasons" });
    this.ranges = h("div", { class: "ranges", role: "group", "aria-label": "Time shown" });
    this.shown = h("span", {});
    this.body = h(
      "div",
      {},
      this.storm.node,
      h("section", { "aria-labelledby": "endpoints-title" }, h("h2", { id: "endpoints-title" }, "Endpoints"),
        wide("Endpoints", h("table", {}, h("thead", {}, h("tr", {}, ENDPOINT_COLUMNS.map((label) => h("th", { scope: "col" }, label)))), this.endpoints))),
      h("section", { "aria-labelledby": "charts-title" },
        h("div", { class: "heading" }, h("h2", { id: "charts-title" }, "Over time: ", this.shown), this.ranges),
        h("div", { class: "charts" }, this.charts.map((chart) => chart.node), this.delays.node)),
      h("div", { class: "two" },
        this.breaker.node,
        h("section", { "aria-labelledby": "hosts-title" }, h("h2", { id: "hosts-title" }, "Hosts"),
          wide("Hosts", h("table", {}, h("thead", {}, h("tr", {}, ["Host", "State", "In flight", "Ejected before"].map((label) => h("th", { scope: "col" }, label)))), this.hosts)))),
      h("div", { class: "two" },
        h("section", { "aria-labelledby": "totals-title" }, h("h2", { id: "totals-title" }, "Since the start"), this.totals),
        h("section", { "aria-labelledby": "reasons-title" }, h("h2", { id: "reasons-title" }, "Why not"), this.reasons)),
      h("section", { "aria-labelledby": "decisions-title" },
        h("div", { class: "heading" }, h("h2", { id: "decisions-title" }, "Latest decisions"), h("a", { href: `#/decisions?service=${encodeURIComponent(this.name)}` }, "All of them")),
        this.decisions.node),
      h("p", {}, h("a", { href: `#/policy?service=${encodeURIComponent(this.name)}` }, "The policy in force here, and where each value came from")),
    );
    this.node = h("div", {}, h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Services"), " / "), h("h1", {}, this.name, " ", this.badge.node), this.missing, this.body);
  }

  /* ---- which endpoint, which time ---- */

  /** True: the address names another part of the same view. */
  stay(place) {
    if (place.page !== "service" || place.name !== this.name) return false;
    this.choose(place.query);
    return true;
  }

  choose(query) {
    this.endpoint = query.get("endpoint") ?? this.busiest();
    this.range = query.get("range") in RANGES ? query.get("range") : "5m";
    this.breaker.choose(this.endpoint);
    this.delayBase = null;
    fill(this.ranges, Object.entries(RANGES).map(([range, label]) => h("a", { href: this.address({ range }), "aria-current": range === this.range ? "true" : null, "aria-label": label }, range)));
    text(this.shown, `${this.endpoint === "default" ? "default endpoint" : this.endpoint}, ${RANGES[this.range]}`);
    clearInterval(this.timer);
    if (REFRESH[this.range]) this.timer = setInterval(() => this.askHistory(), REFRESH[this.range]);
    this.askHistory();
    this.refresh();
  }

  address({ endpoint = this.endpoint, range = this.range }) {
    return `#/service/${encodeURIComponent(this.name)}?endpoint=${encodeURIComponent(endpoint)}&range=${range}`;
  }

  busiest() {
    const service = this.page.live.services.get(this.name);
    let best = "default";
    let most = 0;
    for (const [name, sample] of service?.endpoints ?? []) {
      if (sample.arrivals > most) [best, most] = [name, sample.arrivals];
    }
    return best;
  }

  /* ---- what is asked ---- */

  async askHistory() {
    const { endpoint, range } = this;
    try {
      const past = await this.page.api.get(`/api/history?service=${encodeURIComponent(this.name)}&endpoint=${encodeURIComponent(endpoint)}&range=${range}`);
      if (endpoint !== this.endpoint || range !== this.range) return;
      this.samples = past.rows.map((row) => sampleOf(past.columns, row));
      this.breaker.moved(past.moves);
      this.draw();
    } catch {
      // the link says it, and the next event asks again
    }
  }

  async refresh() {
    if (this.asking) return;
    this.asking = true;
    try {
      const state = await this.page.api.get(`/api/state?service=${encodeURIComponent(this.name)}`);
      this.told = state.services[0] ?? null;
      this.buckets = state.bucketsMs;
      this.show();
    } catch {
      // the link says it
    }
    this.asking = false;
  }

  /* ---- what is shown ---- */

  update() {
    const service = this.page.live.services.get(this.name);
    if (service?.latest === undefined) return;
    this.badge.update(service.trouble);
    this.storm.update(service.storm, stormOf(service.storm));
    this.showEndpoints(service);
    const sample = service.endpoints.get(this.endpoint);
    if (this.range === "5m" && sample && sample.time > (this.samples.at(-1)?.time ?? 0)) {
      if (sample.breaker !== this.samples.at(-1)?.breaker || sample.opened > 0) this.askHistory();
      this.samples.push(sample);
      while (this.samples[0].time < sample.time - LIVE_MS) this.samples.shift();
      this.draw();
    }
    this.refresh();
    this.decisions.update();
  }

  reloaded() {
    this.askHistory();
  }

  draw() {
    const times = this.samples.map((sample) => sample.time / 1000);
    const steps = this.range === "5m" ? MEAN_STEPS : 1;
    const recent = this.samples.map((sample, i) => together(this.samples.slice(Math.max(0, i + 1 - steps), i + 1)));
    const column = (line) => this.samples.map((sample, i) => line(sample, recent[i]));
    this.charts.forEach((chart, i) => chart.update(times, ...CHARTS[i].lines.map(column)));
  }

  showEndpoints(service) {
    const rows = [...service.endpoints].map(([name, sample]) => {
      const now = figuresOf(sample);
      const left = sample.budgetCap ? sample.budgetLeft / sample.budgetCap : undefined;
      const link = h("a", { href: this.address({ endpoint: name }), "aria-current": name === this.endpoint ? "true" : null }, name);
      const cells = [perSecond(now.requests), perSecond(now.retries), percent(now.first), percent(now.success), times(now.amplification), percent(left), words(sample.breaker), number(sample.inFlight)];
      return h("tr", { "data-endpoint": name, "data-chosen": name === this.endpoint ? "yes" : null }, h("th", { scope: "row" }, link), cells.map((cell) => h("td", {}, cell)));
    });
    if (this.endpoints.contains(document.activeElement)) return; // the keyboard is in there: not now
    fill(this.endpoints, rows);
  }

  show() {
    this.missing.hidden = this.told !== null;
    this.body.hidden = this.told === null;
    if (this.told === null) return;
    const target = this.told.endpoints.find((each) => each.name === this.endpoint) ?? this.told.endpoints[0];
    this.breaker.update(target.breaker);
    fill(this.hosts, this.told.hosts.map((host) => hostRow(host)));
    if (this.told.ejectionsIgnored) this.hosts.append(h("tr", {}, h("td", { colspan: 4 }, "△ So many hosts are bad that ejections are ignored.")));
    fill(this.totals, TOTALS.map(([key, label, said]) => [h("dt", {}, label), h("dd", { "data-figure": key }, said(target))]));
    fill(this.reasons, reasonTable("Retries refused", target.overflow), reasonTable("Calls refused before they were sent", target.shed), reasonTable("Calls that failed", target.calls.failed), reasonTable("What shadow mode would have refused", target.shadow, true));
    this.showDelays(target.delay);
  }

  // Counts are of all time: the bars are of the time since this endpoint was opened, once there is enough of it.
  showDelays(delay) {
    this.delayBase ??= { counts: delay.counts, time: Date.now() };
    const since = delay.counts.map((each, i) => each - this.delayBase.counts[i]);
    const some = sumOf(since) >= 20;
    const labels = [...this.buckets.map((bound) => (bound < 1000 ? `${bound}` : `${bound / 1000}s`)), "+"];
    const mean = delay.count > 0 ? `mean ${ms(delay.sumMs / delay.count)}` : "no retry yet";
    this.delays.update(labels, some ? since : delay.counts, `${count(delay.count)} waits since the start, ${mean}. Bars: up to so many ms, ${some ? `since ${clock(this.delayBase.time)}` : "since the start"}.`);
  }

  end() {
    clearInterval(this.timer);
    for (const chart of this.charts) chart.end();
  }
}

function hostRow(host) {
  const state = host.ejected ? `△ ejected, back in ${ms(host.ejectedForMs)}` : host.usable ? "● usable" : "✗ not usable";
  const quiet = host.askedForQuietMs > 0 ? `, asked for quiet: ${ms(host.askedForQuietMs)}` : "";
  const name = host.address && host.address !== host.name ? `${host.name} (${host.address})` : host.name;
  return h("tr", { "data-host": host.name }, h("th", { scope: "row" }, name), h("td", {}, state + quiet), h("td", {}, number(host.inFlight)), h("td", {}, host.timesEjected === 0 ? NONE : `${host.timesEjected}×`));
}

function reasonTable(title, reasons, onlyIfAny = false) {
  const rows = Object.entries(reasons).sort((a, b) => b[1] - a[1]);
  if (rows.length === 0 && onlyIfAny) return null;
  return [
    h("h3", {}, title),
    rows.length === 0 ? h("p", { class: "note" }, "none") : h("dl", { class: "totals" }, rows.map(([reason, n]) => [h("dt", {}, words(reason)), h("dd", { "data-reason": reason }, count(n))])),
  ];
}
