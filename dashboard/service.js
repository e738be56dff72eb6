// SPDX-License-Identifier: MIT
//
// One service, one of its endpoints at a time: charts for minutes or hours, the breaker with its buttons, the hosts, the
// counts since the start, and the latest decisions.

import { BreakerPanel } from "./breaker.js";
import { Bars, TimeChart } from "./charts.js";
import { DecisionList } from "./decisions.js";
import { arrange, attribute, fill, h, text, wide } from "./dom.js";
import { NONE, clock, count, ms, number, percent, perSecond, plural, times, words } from "./format.js";
import { budgetOf, figuresOf, inOrder, sampleOf, stormOf, sumOf as together, withGaps } from "./live.js";
import { badge, budgetSaid } from "./services.js";
import { StormPanel } from "./storm.js";
import { VerdictPanel, verdictOf } from "./verdict.js";

const RANGES = { "5m": "5 minutes", "1h": "1 hour", "6h": "6 hours", "24h": "24 hours" };
const HOUR = 3600;
const SPANS = { "5m": null, "1h": HOUR, "6h": 6 * HOUR, "24h": 24 * HOUR }; // seconds that charts show; null: the samples of this page
const REFRESH = { "1h": 10000, "6h": 60000, "24h": 60000 };
const LIVE_MS = 300000;
const MEAN_STEPS = 5; // seconds, of shares
const LEVELS = ["closed", "half open", "open"];
const LEVEL_OF = { CLOSED: 0, DISABLED: 0, METRICS_ONLY: 0, HALF_OPEN: 1, OPEN: 2, FORCED_OPEN: 2 };

const rate = (key) => (sample) => (sample.spanMs > 0 ? (1000 * sample[key]) / sample.spanMs : null);
const figure = (key) => (sample, recent) => figuresOf(recent)[key] ?? null; // a share of one quiet second says nothing
const value = (key) => (sample) => sample[key];

/** Each chart: its looks, and the source of its lines. */
const CHARTS = [
  {
    options: {
      title: "Requests and retries", note: "The gap between sent and requests is the load that retries add.", format: perSecond, most: 1,
      series: [{ label: "requests", slot: 1, fill: true }, { label: "sent", slot: 2 }, { label: "retries", slot: 3 }],
    },
    lines: [rate("arrivals"), rate("attempts"), rate("retries")],
  },
  {
    options: {
      title: "Success", note: "The gap between the two lines is the share of calls that retries saved.", format: percent, most: 1,
      series: [{ label: "after retries", slot: 2, fill: true }, { label: "at the first attempt", slot: 1 }],
    },
    lines: [figure("success"), figure("first")],
  },
  {
    options: {
      title: "Load multiplied by", note: "Attempts per call, without refused calls; 1.00× = no retries.", format: times, most: 1.5, least: 1,
      series: [{ label: "amplification", slot: 3, fill: true }],
    },
    lines: [figure("amplification")],
  },
  {
    options: {
      title: "Budget", note: "Retries that the budget can pay for now; successes fill it. Its maximum follows the traffic: a tenth of the calls in 10 s, at least 1 and at most 10 (kind earned).", format: number, most: 1,
      series: [{ label: "left", slot: 1, fill: true }, { label: "at most", slot: 4 }],
    },
    lines: [value("budgetLeft"), value("budgetCap")],
  },
  {
    options: {
      title: "Retries refused", note: "Retries that were due and were not sent, by reason.", format: perSecond, most: 0.2,
      series: [
        { label: "budget empty", slot: 3 }, { label: "breaker open, probe failed", slot: 2 }, { label: "deadline", slot: 1 },
        { label: "limit, rate", slot: 4 }, { label: "stopped", slot: 5 },
      ],
    },
    lines: [rate("budgetEmpty"), rate("breakerOpen"), rate("deadline"), rate("limited"), rate("stopped")],
  },
  {
    options: {
      title: "Breaker", note: "Open: calls are refused at once, and the service gets no load.", levels: LEVELS,
      series: [{ label: "state", slot: 3, fill: true }],
    },
    lines: [(sample) => (sample.opened > 0 ? 2 : LEVEL_OF[sample.breaker])],
  },
  {
    options: {
      title: "In flight and queue", note: "Attempts in flight and their limit, calls that wait for a slot, calls refused before an attempt.", format: number, most: 5,
      series: [{ label: "in flight", slot: 1, fill: true }, { label: "limit", slot: 4, far: true }, { label: "waiting", slot: 3 }, { label: "refused per second", slot: 5 }],
    },
    lines: [value("inFlight"), value("limit"), value("waiting"), rate("shed")],
  },
  {
    options: {
      title: "Latency", note: "Of first attempts in the last 10 to 20 seconds: 50 %, 95 % and 99 % were faster.", format: ms, most: 1,
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
  ["redone", "Sent again on a new connection, not counted as retries", (t) => count(t.redone)],
];

function sumOf(counts) {
  return Object.values(counts).reduce((sum, each) => sum + each, 0);
}

const ENDPOINT_COLUMNS = ["Endpoint", "Requests", "Retries", "First attempt", "After retries", "Load", "Budget left", "Breaker", "In flight"];

/** The row stays the same node, so that it keeps the keyboard focus. */
class EndpointRow {
  constructor(name) {
    this.link = h("a", {}, name);
    this.cells = ENDPOINT_COLUMNS.slice(1).map(() => h("td", {}, NONE));
    this.node = h("tr", { "data-endpoint": name }, h("th", { scope: "row" }, this.link), this.cells);
  }

  update(view, service, name) {
    const sample = service.endpoints.get(name);
    const now = service.figuresOf(name);
    const isChosen = name === view.endpoint;
    attribute(this.link, "href", view.address({ endpoint: name }));
    attribute(this.link, "aria-current", isChosen ? "true" : null);
    attribute(this.node, "data-chosen", isChosen ? "yes" : null);
    const said = [perSecond(now.requests), perSecond(now.retries), percent(now.first), percent(now.success), times(now.amplification), budgetSaid(budgetOf(sample)), words(sample.breaker), number(sample.inFlight)];
    said.forEach((each, i) => text(this.cells[i], each));
  }
}

export class ServiceView {
  constructor(page, name, query) {
    this.page = page;
    this.name = name;
    this.title = name;
    this.told = null; // of /api/state
    this.samples = [];
    this.endpointRows = new Map();
    this.badge = badge();
    this.verdict = new VerdictPanel();
    this.storm = new StormPanel();
    this.charts = CHARTS.map((each) => new TimeChart(each.options));
    this.delays = new Bars({ title: "Waits before retries", note: "Spread out: jitter works. A single bar: callers retry at the same time." });
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
    this.rangeLinks = Object.entries(RANGES).map(([range, label]) => [range, h("a", { "aria-label": label }, range)]);
    this.ranges = h("div", { class: "ranges", role: "group", "aria-label": "Time shown" }, this.rangeLinks.map(([, link]) => link));
    this.shown = h("span", {});
    this.begins = h("p", { class: "note", role: "status", hidden: true });
    this.body = h(
      "div",
      {},
      this.verdict.node,
      h("div", { class: "two" },
        this.breaker.node,
        h("section", { "aria-labelledby": "hosts-title" }, h("h2", { id: "hosts-title" }, "Hosts"),
          wide("Hosts", h("table", {}, h("thead", {}, h("tr", {}, ["Host", "State", "In flight", "Ejections"].map((label) => h("th", { scope: "col" }, label)))), this.hosts)))),
      this.storm.node,
      h("section", { "aria-labelledby": "endpoints-title" }, h("h2", { id: "endpoints-title" }, "Endpoints"),
        wide("Endpoints", h("table", {}, h("thead", {}, h("tr", {}, ENDPOINT_COLUMNS.map((label) => h("th", { scope: "col" }, label)))), this.endpoints))),
      h("section", { "aria-labelledby": "charts-title" },
        h("div", { class: "heading" }, h("h2", { id: "charts-title" }, "Over time: ", this.shown), this.ranges),
        this.begins,
        h("div", { class: "charts" }, this.charts.map((chart) => chart.node), this.delays.node)),
      h("div", { class: "two" },
        h("section", { "aria-labelledby": "totals-title" }, h("h2", { id: "totals-title" }, "Since the start"), this.totals),
        h("section", { "aria-labelledby": "reasons-title" }, h("h2", { id: "reasons-title" }, "Refused and failed, by reason"), this.reasons)),
      h("section", { "aria-labelledby": "decisions-title" },
        h("div", { class: "heading" }, h("h2", { id: "decisions-title" }, "Latest decisions"), h("a", { href: `#/decisions?service=${encodeURIComponent(this.name)}` }, "All decisions")),
        this.decisions.node),
      h("p", {}, h("a", { href: `#/policy?service=${encodeURIComponent(this.name)}` }, "The policy in force for this service, with the source of each value")),
    );
    this.node = h("div", {}, h("p", { class: "crumbs" }, h("a", { href: "#/" }, "Services"), " / ", this.name), h("h1", {}, this.name, " ", this.badge.node), this.missing, this.body);
  }

  /* ---- the chosen endpoint and time ---- */

  /** True: the address names this service, so this view shows it. */
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
    this.samples = [];
    for (const [range, link] of this.rangeLinks) {
      attribute(link, "href", this.address({ range }));
      attribute(link, "aria-current", range === this.range ? "true" : null);
    }
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

  /* ---- requests to the gateway ---- */

  async askHistory() {
    const { endpoint, range } = this;
    try {
      const past = await this.page.api.get(`/api/history?service=${encodeURIComponent(this.name)}&endpoint=${encodeURIComponent(endpoint)}&range=${range}`);
      if (endpoint !== this.endpoint || range !== this.range) return;
      if (past.history) this.samples = inOrder(past.rows.map((row) => sampleOf(past.columns, row)));
      this.isKept = past.history;
      this.breaker.moved(past.states);
      this.draw();
    } catch {
      // the link in the header shows it, and the next event asks again
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
      // the link in the header shows it
    }
    this.asking = false;
  }

  /* ---- drawing ---- */

  update() {
    const { live } = this.page;
    const service = live.services.get(this.name);
    if (service?.latest === undefined) {
      if (live.latest !== null && service === undefined) this.gone();
      return;
    }
    this.badge.update(service.trouble);
    this.storm.update(service.storm, stormOf(service.storm));
    this.showEndpoints(service);
    const sample = service.endpoints.get(this.endpoint);
    if (this.range === "5m" && sample && live.latest !== this.noted) {
      this.noted = live.latest;
      if (sample.breaker !== this.samples.at(-1)?.breaker || sample.opened > 0) this.askHistory();
      this.samples = inOrder([...this.samples, sample]).filter((each) => each.time >= sample.time - LIVE_MS);
      this.draw();
    }
    this.refresh();
    this.decisions.update();
  }

  // A reload removed the service from the policy.
  gone() {
    this.told = null;
    this.show();
  }

  /** After a break, the gateway's history fills the gap. */
  resumed() {
    this.askHistory();
  }

  /** Another policy, or another process: the counts of waits begin at zero. */
  reloaded() {
    this.delayBase = null;
    this.askHistory();
  }

  draw() {
    const points = withGaps(this.samples);
    const steps = this.range === "5m" ? MEAN_STEPS : 1;
    const recent = points.map((point, i) => together(points.slice(Math.max(0, i + 1 - steps), i + 1).filter((each) => !each.gap)));
    const column = (line) => points.map((point, i) => (point.gap ? null : line(point, recent[i])));
    const now = (this.page.live.latest?.time ?? this.samples.at(-1)?.time ?? Date.now()) / 1000;
    const span = SPANS[this.range];
    const seconds = points.map((point) => point.time / 1000);
    this.charts.forEach((chart, i) => {
      chart.span = span === null ? null : [now - span, now];
      chart.update(seconds, ...CHARTS[i].lines.map(column));
    });
    this.showBeginning(now - (span ?? 0));
  }

  // Says why the history is shorter than the chosen time.
  showBeginning(from) {
    const first = this.samples[0];
    const isShort = first !== undefined && SPANS[this.range] !== null && (first.time - first.spanMs) / 1000 > from + 1;
    let said = "";
    if (this.isKept === false) said = "△ There is no history of this endpoint: other endpoints fill the memory for histories. Choose 5 minutes to see the samples of this page.";
    else if (isShort) said = `The history begins at ${clock(first.time - first.spanMs).slice(0, 5)}.`;
    else if (first === undefined && SPANS[this.range] !== null) said = "There is no history yet: it begins with the first request.";
    text(this.begins, said);
    this.begins.hidden = said === "";
  }

  showEndpoints(service) {
    const before = this.endpointRows;
    this.endpointRows = new Map([...service.endpoints.keys()].map((name) => [name, before.get(name) ?? new EndpointRow(name)]));
    for (const [name, row] of this.endpointRows) row.update(this, service, name);
    arrange(this.endpoints, [...this.endpointRows.values()].map((row) => row.node));
  }

  show() {
    this.missing.hidden = this.told !== null;
    this.body.hidden = this.told === null;
    this.badge.node.hidden = this.told === null;
    if (this.told === null) return;
    const target = this.told.endpoints.find((each) => each.name === this.endpoint) ?? this.told.endpoints[0];
    this.breaker.update(target.breaker);
    this.judge();
    fill(this.hosts, this.told.hosts.map((host) => hostRow(host, this.told.ejectionsIgnored)));
    if (this.told.ejectionsIgnored) this.hosts.append(h("tr", {}, h("td", { colspan: 4 }, "△ Too many hosts fail, so ejections are ignored.")));
    fill(this.totals, TOTALS.map(([key, label, said]) => [h("dt", {}, label), h("dd", { "data-figure": key }, said(target))]));
    fill(this.reasons, reasonTable("Retries refused", target.overflow), reasonTable("Calls refused before an attempt", target.shed), reasonTable("Calls that failed", target.calls.failed), reasonTable("Shadow mode: would have been refused", target.shadow, true));
    this.showDelays(target.delay);
  }

  // One sentence about the whole service, whichever endpoint is chosen.
  judge() {
    const service = this.page.live.services.get(this.name);
    if (service?.latest === undefined) return;
    this.verdict.update(verdictOf({ name: this.name, figures: service.figures, trouble: service.trouble, told: this.told, decisions: this.decisions.list, now: this.page.live.latest.time }));
  }

  // The gateway counts since its start. The bars show the time since this endpoint was opened, as soon as there are enough waits.
  showDelays(delay) {
    this.delayBase ??= { counts: delay.counts, time: Date.now() };
    const since = delay.counts.map((each, i) => each - this.delayBase.counts[i]);
    const some = sumOf(since) >= 20;
    const labels = [...this.buckets.map((bound) => (bound < 1000 ? `${bound}` : `${bound / 1000}s`)), "+"];
    const mean = delay.count > 0 ? `mean ${ms(delay.sumMs / delay.count)}` : "no retry yet";
    this.delays.update(labels, some ? since : delay.counts, `${plural(delay.count, "wait")} since the start, ${mean}. Each bar: waits up to its number of ms, ${some ? `since ${clock(this.delayBase.time)}` : "since the start"}.`);
  }

  end() {
    clearInterval(this.timer);
    for (const chart of this.charts) chart.end();
  }
}

/** A host that fails is shown as failing, whether it is ejected or still used because too many hosts fail. */
export function hostSaid(host, ejectionsIgnored) {
  const share = host.attempts > 0 ? host.failed / host.attempts : 0;
  const rate = `${percent(share)} of ${plural(host.attempts ?? 0, "attempt")}`;
  if (share >= 0.5 && (ejectionsIgnored || !host.ejected)) return `✗ failing: ${rate}`;
  if (host.unhealthy) return `△ fails its health checks${host.usable ? ", still used" : ""}${checkSaid(host.healthCheck)}`;
  if (host.ejected) return `△ ejected, back in ${ms(host.ejectedForMs)}`;
  if (!host.usable) return "✗ not usable";
  return share > 0 ? `● usable, failed ${rate}` : "● usable";
}

function checkSaid(check) {
  if (!check?.why) return "";
  return `: ${check.why}${check.status ? ` (${check.status})` : ""}`;
}

function hostRow(host, ejectionsIgnored) {
  const state = hostSaid(host, ejectionsIgnored);
  const quiet = host.askedForQuietMs > 0 ? `, Retry-After: ${ms(host.askedForQuietMs)} left` : "";
  const name = host.address && host.address !== host.name ? `${host.name} (${host.address})` : host.name;
  return h("tr", { "data-host": host.name }, h("th", { scope: "row" }, name), h("td", { class: "state" }, state + quiet), h("td", {}, number(host.inFlight)), h("td", {}, host.timesEjected === 0 ? NONE : `${host.timesEjected}×`));
}

function reasonTable(title, reasons, onlyIfAny = false) {
  const rows = Object.entries(reasons).sort((a, b) => b[1] - a[1]);
  if (rows.length === 0 && onlyIfAny) return null;
  return [
    h("h3", {}, title),
    rows.length === 0 ? h("p", { class: "note" }, "none") : h("dl", { class: "totals" }, rows.map(([reason, n]) => [h("dt", {}, words(reason)), h("dd", { "data-reason": reason }, count(n))])),
  ];
}
