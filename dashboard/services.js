// SPDX-License-Identifier: MIT
//
// All services, the worst first. The page writes to a row only where its text changes, and only while the row is visible,
// so that hundreds of services cost no more than a screenful.

import { Sparkline } from "./charts.js";
import { arrange, attribute, h, text } from "./dom.js";
import { NONE, ms, number, percent, perSecond, plural, times, words } from "./format.js";
import { allFail, areIgnored, isTrouble } from "./trouble.js";

const COLUMNS = [
  ["service", "Service"],
  ["requests", "Requests"],
  ["retries", "Retries"],
  ["first", "First attempt"],
  ["success", "After retries"],
  ["amplification", "Load"],
  ["budget", "Budget left"],
  ["breaker", "Breaker"],
  ["flight", "In flight"],
  ["queue", "Queue"],
  ["p99", "p99"],
  ["hosts", "Hosts"],
];

/** A bar; the text beside it has the same value. */
class Gauge {
  constructor() {
    this.bar = h("rect", { class: "gauge-fill", x: 0, y: 0, width: "0%", height: "100%" });
    this.node = h("svg", { class: "gauge", width: 44, height: 8, "aria-hidden": "true" }, h("rect", { class: "gauge-back", width: "100%", height: "100%" }), this.bar);
  }

  /** null: the bar is hidden. */
  update(share) {
    attribute(this.node, "hidden", share === null ? "" : null);
    attribute(this.bar, "width", `${Math.round(100 * Math.min(1, Math.max(0, share ?? 0)))}%`);
    attribute(this.node, "data-low", share !== undefined && share !== null && share < 0.1 ? "yes" : null);
  }
}

/** The share of a budget as text; null: there is no budget. */
export function budgetSaid(share) {
  return share === null ? "none" : percent(share);
}

export function badge() {
  const sign = h("span", { class: "sign", "aria-hidden": "true" });
  const word = h("span", {});
  const node = h("span", { class: "badge" }, sign, " ", word);
  return {
    node,
    update({ weight, sign: mark, word: said, sentence }) {
      attribute(node, "data-weight", weight);
      attribute(node, "title", sentence);
      text(sign, mark);
      text(word, said);
    },
  };
}

function hostsSaid(service) {
  const { hosts, usable, ejected, unhealthy } = service;
  if (unhealthy > 0) return allFail(service) ? `${usable} of ${hosts}, health checks ignored` : `${usable} of ${hosts}, ${unhealthy} unhealthy`;
  if (ejected === 0) return `${usable} of ${hosts}`;
  return areIgnored(service) ? `${usable} of ${hosts}, ejections ignored` : `${usable} of ${hosts}, ${ejected} ejected`;
}

class Row {
  constructor(service) {
    this.seen = false;
    this.badge = badge();
    this.spark = new Sparkline({ width: 84, height: 20, slot: 1 });
    this.gauge = new Gauge();
    this.cells = Object.fromEntries(COLUMNS.map(([key]) => [key, h("span", {}, NONE)]));
    const inside = {
      service: [h("a", { href: `#/service/${encodeURIComponent(service.name)}` }, service.name), this.badge.node],
      requests: [this.spark.node, this.cells.requests],
      budget: [this.gauge.node, this.cells.budget],
    };
    this.node = h(
      "tr",
      { role: "row" },
      COLUMNS.map(([key, label]) => {
        const tag = key === "service" ? "th" : "td";
        const role = key === "service" ? "rowheader" : "cell";
        return h(tag, { role, scope: key === "service" ? "row" : null, class: `c-${key}`, "data-label": label }, inside[key] ?? this.cells[key]);
      }),
    );
  }

  update(service) {
    const { figures, latest, trouble } = service;
    this.badge.update(trouble);
    attribute(this.node, "data-weight", trouble.weight);
    if (!this.seen) return;
    const cells = this.cells;
    this.spark.update(service.recent.arrivals, 60);
    text(cells.requests, perSecond(figures.requests));
    text(cells.retries, perSecond(figures.retries));
    text(cells.first, percent(figures.first));
    text(cells.success, percent(figures.success));
    text(cells.amplification, times(figures.amplification));
    this.gauge.update(latest.budget);
    text(cells.budget, budgetSaid(latest.budget));
    text(cells.breaker, words(latest.breaker));
    text(cells.flight, latest.limit === null ? number(latest.inFlight) : `${number(latest.inFlight)} of ${number(latest.limit)}`);
    text(cells.queue, number(latest.waiting));
    text(cells.p99, ms(latest.p99));
    text(cells.hosts, hostsSaid(service));
  }
}

export class Tile {
  constructor(label, note, slot) {
    this.value = h("span", { class: "tile-value" }, NONE);
    this.spark = slot && new Sparkline({ width: 120, height: 26, slot });
    this.said = note;
    this.note = h("span", { class: "note" }, note);
    this.node = h("li", { class: "tile" }, h("span", { class: "tile-label" }, label), this.value, this.spark?.node, this.note);
  }

  /** `weight` colours a value that matters, and `sentence` says why in place of the note. */
  update(value, past, { weight = null, sentence = this.said } = {}) {
    text(this.value, value);
    text(this.note, sentence);
    attribute(this.node, "data-weight", weight);
    if (past) this.spark.update(past, 60);
  }
}

/** The sentence of a card whose number is bad; the thresholds are those of trouble.js. */
export function tileOfSuccess({ success }) {
  if (success === undefined || success >= 0.95) return {};
  return { weight: "critical", sentence: success === 0 ? "callers get no answer" : `${percent(1 - success)} of the callers get no answer` };
}

export function tileOfLoad({ amplification }) {
  if (amplification === undefined || amplification <= 1.43) return {}; // 30 % of the attempts are retries
  return amplification > 2 ? { weight: "critical", sentence: "more than half of the attempts are retries" } : { weight: "warning", sentence: "more than 30 % of the attempts are retries" };
}

export function tileOfTrouble(services) {
  const worst = services[0]; // they are sorted
  if (worst === undefined || !isTrouble(worst.trouble)) return {};
  return { weight: worst.trouble.weight, sentence: `${worst.name}: ${worst.trouble.word}` };
}

export class ServicesView {
  title = "Services";

  constructor(page) {
    this.page = page;
    this.rows = new Map();
    this.tiles = {
      requests: new Tile("Requests", "also those that are refused", 1),
      attempts: new Tile("Sent to hosts", "first attempts and retries", 2),
      amplification: new Tile("Load multiplied by", "attempts per call; 1.00× = no retries"),
      first: new Tile("Success at first", "without any retry"),
      success: new Tile("Success after retries", "as callers see it"),
      trouble: new Tile("In trouble", "services to look at"),
    };
    this.filter = h("input", { id: "filter", type: "search", placeholder: "part of a name", oninput: () => this.arrange() });
    this.only = h("input", { id: "only", type: "checkbox", onchange: () => this.arrange() });
    this.count = h("span", { class: "note", role: "status" });
    this.body = h("tbody", { role: "rowgroup" });
    this.empty = h("p", { class: "empty", hidden: true });
    this.node = h(
      "div",
      {},
      h("h1", {}, "Services"),
      h("ul", { class: "tiles" }, Object.values(this.tiles).map((tile) => tile.node)),
      h(
        "div",
        { class: "tools" },
        h("label", { for: "filter" }, "Filter"),
        this.filter,
        h("label", { class: "check" }, this.only, " only services in trouble"),
        this.count,
      ),
      h(
        "table",
        { class: "services", role: "table" },
        h("caption", { class: "unseen" }, "Services, the worst first; rates and shares are of the last ten seconds"),
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, COLUMNS.map(([key, label]) => h("th", { role: "columnheader", scope: "col", class: `c-${key}` }, label)))),
        this.body,
      ),
      this.empty,
      h("p", { class: "note" }, "Rates and shares are means of the last ten seconds. The list is sorted by trouble, then by name."),
    );
    this.watcher = new IntersectionObserver((changes) => this.scrolled(changes), { rootMargin: "200px" });
  }

  scrolled(changes) {
    for (const change of changes) {
      const row = this.rows.get(change.target.dataset.name);
      if (row === undefined) continue;
      row.seen = change.isIntersecting;
      const service = this.page.live.services.get(change.target.dataset.name);
      if (row.seen && service?.latest) row.update(service);
    }
  }

  update() {
    const { live } = this.page;
    if (live.latest === null) return;
    const figures = live.figures();
    const services = live.sorted();
    const troubled = services.filter((service) => isTrouble(service.trouble)).length;
    this.tiles.requests.update(perSecond(figures.requests), live.past("arrivals"));
    this.tiles.attempts.update(perSecond(figures.attempts), live.past("attempts"));
    this.tiles.amplification.update(times(figures.amplification), null, tileOfLoad(figures));
    this.tiles.first.update(percent(figures.first));
    this.tiles.success.update(percent(figures.success), null, tileOfSuccess(figures));
    this.tiles.trouble.update(`${troubled} of ${services.length}`, null, tileOfTrouble(services));
    this.arrange();
  }

  row(service) {
    let row = this.rows.get(service.name);
    if (row === undefined) {
      row = new Row(service);
      row.node.dataset.name = service.name;
      this.rows.set(service.name, row);
      this.watcher.observe(row.node);
    }
    return row;
  }

  // Rows move only when their order changes, so that a row stays under the pointer of a user who is about to click it.
  arrange() {
    const wanted = this.filter.value.trim().toLowerCase();
    const all = this.page.live.sorted();
    const shown = all.filter((service) => service.name.toLowerCase().includes(wanted) && (!this.only.checked || isTrouble(service.trouble)));
    for (const service of shown) this.row(service).update(service);
    arrange(this.body, shown.map((service) => this.row(service).node));
    text(this.count, shown.length === all.length ? plural(all.length, "service") : `${shown.length} of ${plural(all.length, "service")}`);
    this.empty.hidden = shown.length > 0;
    text(this.empty, all.length === 0 ? "The policy has no services yet." : "No service matches the filter. If it shows only services in trouble, there are none.");
  }

  end() {
    this.watcher.disconnect();
  }
}
