// SPDX-License-Identifier: MIT
//
// All processes that share a store with this gateway, worst first: the same data and the same order as `becalm top --fleet`
// (src/cli/top/cmd_top_fleet.c). The page asks for it only while this view is open.

import { arrange, attribute, fill, h, text, wide } from "./dom.js";
import { NONE, duration, ms, percent, perSecond, plural } from "./format.js";
import { Tile, badge } from "./services.js";

const EVERY = 1900; // processes report every two seconds
const SILENT = 5; // seconds
const SHOWN = 200; // rows: the worst ones; a note counts the rest

const COLUMNS = [
  ["instance", "Instance"],
  ["machine", "Machine"],
  ["version", "Version"],
  ["policy", "Policy"],
  ["calls", "Calls"],
  ["retries", "Retries"],
  ["ratio", "Ratio"],
  ["budgets", "Own share"],
  ["up", "Up"],
  ["told", "Told"],
];

export const STATES = {
  silent: { weight: "critical", sign: "✗", word: "silent", sentence: "no report for five seconds: the process died, or can't reach the store" },
  degraded: { weight: "warning", sign: "△", word: "degraded", sentence: "no lease from the store: the process pays retries from its own share" },
  differs: { weight: "warning", sign: "≠", word: "differs", sentence: "its policy or version differs from that of most processes" },
  fine: { weight: "fine", sign: "●", word: "fine", sentence: "no trouble" },
};
const RANK = Object.keys(STATES);

/** Retries per call; undefined without calls. */
function ratioOf(calls, retries) {
  return calls > 0 ? retries / calls : undefined;
}

/** The instances with the trouble of each, worst first. */
export function ranked(instances) {
  const kind = ({ policy, version }) => `${policy} ${version}`;
  const alike = new Map();
  for (const one of instances) alike.set(kind(one), (alike.get(kind(one)) ?? 0) + 1);
  const most = Math.max(0, ...alike.values());
  const all = instances.map((one) => {
    const wrong = [one.toldSecondsAgo >= SILENT, one.degraded > 0, alike.get(kind(one)) < most];
    const state = RANK[wrong.indexOf(true)] ?? "fine";
    return { ...one, state, wrong: 4 * wrong[0] + 2 * wrong[1] + wrong[2], ratio: ratioOf(one.callsPerSecond, one.retriesPerSecond) };
  });
  return all.sort((a, b) => b.wrong - a.wrong || (b.ratio ?? 0) - (a.ratio ?? 0) || (a.id < b.id ? -1 : 1));
}

/** The sum of all instances that report: calls and retries with shared budgets, and the ratios that these allow. */
export function together(store) {
  const there = store.instances.filter((one) => one.toldSecondsAgo < SILENT);
  const sum = (key) => there.reduce((total, one) => total + one[key], 0);
  const calls = sum("sharedCallsPerSecond");
  const retries = sum("sharedRetriesPerSecond");
  const allowed = store.budgets.map((budget) => budget.percent / 100);
  return { calls, retries, ratio: ratioOf(calls, retries), lowest: Math.min(...allowed), highest: Math.max(...allowed) };
}

/** The card of the ratio. Two points above the allowed ratio is the alert SharedBudgetOverspent. */
export function ratioSaid({ ratio, lowest, highest }) {
  const allowed = lowest === highest ? percent(highest) : `${percent(lowest)} to ${percent(highest)}`;
  if (ratio > highest + 0.02) return { weight: "critical", sentence: `more than the ${allowed} allowed` };
  return { sentence: `of ${allowed} allowed` };
}

/** Whether the store answers, how old its last answer is, and its error. */
export function storeSaid({ up, error, answeredSecondsAgo }) {
  const age = answeredSecondsAgo === undefined ? "never answered" : `answered ${ms(answeredSecondsAgo * 1000)} ago`;
  const word = up ? "up" : "away";
  if (!up) return { word, weight: "critical", sentence: error === undefined ? age : `${error}; ${age}` };
  return error === undefined ? { word, weight: null, sentence: age } : { word, weight: "warning", sentence: `${error}; ${age}` };
}

/** The number of instances by trouble; "" where all are fine. */
export function troublesSaid(instances) {
  const count = (state) => instances.filter((one) => one.state === state).length;
  const words = { silent: "silent", degraded: "degraded", differs: "different" };
  const said = Object.keys(words).filter((state) => count(state) > 0).map((state) => `${count(state)} ${words[state]}`);
  return said.join(", ");
}

class Row {
  constructor(one, isOwn) {
    this.badge = badge();
    this.cells = Object.fromEntries(COLUMNS.map(([key]) => [key, h("span", {}, NONE)]));
    const name = [h("code", {}, one.id), isOwn && h("span", { class: "note" }, " this one"), " ", this.badge.node];
    this.node = h(
      "tr",
      { role: "row", "data-instance": one.id },
      COLUMNS.map(([key, label]) => {
        const isName = key === "instance";
        return h(isName ? "th" : "td", { role: isName ? "rowheader" : "cell", scope: isName ? "row" : null, class: `c-${key}`, "data-label": label }, isName ? name : this.cells[key]);
      }),
    );
  }

  update(one) {
    const { cells } = this;
    this.badge.update(STATES[one.state]);
    attribute(this.node, "data-state", one.state);
    text(cells.machine, one.name);
    text(cells.version, one.version);
    text(cells.policy, one.policy);
    text(cells.calls, perSecond(one.callsPerSecond));
    text(cells.retries, perSecond(one.retriesPerSecond));
    text(cells.ratio, percent(one.ratio));
    text(cells.budgets, one.degraded === 0 ? `none of ${one.budgets}` : `${one.degraded} of ${one.budgets}`);
    text(cells.up, duration(one.uptimeSeconds * 1000));
    text(cells.told, `${ms(one.toldSecondsAgo * 1000)} ago`);
  }
}

/** One store and its processes. */
class Store {
  constructor({ store, fleet }) {
    this.rows = new Map();
    this.tiles = {
      store: new Tile(`Store ${store}`, ""),
      instances: new Tile("Instances", "that have reported"),
      calls: new Tile("Calls", "with a shared budget"),
      retries: new Tile("Retries", "of those calls"),
      ratio: new Tile("Retries per call", ""),
    };
    this.body = h("tbody", { role: "rowgroup" });
    this.note = h("p", { class: "note", role: "status" });
    this.budgets = h("tbody");
    this.node = h(
      "div",
      { class: "store", "data-store": store },
      h("h2", {}, `Fleet ${fleet}`),
      h("ul", { class: "tiles" }, Object.values(this.tiles).map((tile) => tile.node)),
      h(
        "table",
        { class: "services", role: "table" },
        h("caption", { class: "unseen" }, "Processes that share this store, the worst first"),
        h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, COLUMNS.map(([key, label]) => h("th", { role: "columnheader", scope: "col", class: `c-${key}` }, label)))),
        this.body,
      ),
      this.note,
      h(
        "section",
        {},
        h("h3", {}, "This gateway's budgets in this store"),
        wide("Budgets", h("table", { class: "policy" }, h("thead", {}, h("tr", {}, ["Service", "Endpoint", "Allowed", "Left now", "Instances", "State"].map((label) => h("th", { scope: "col" }, label)))), this.budgets)),
      ),
    );
  }

  row(one, own) {
    if (!this.rows.has(one.id)) this.rows.set(one.id, new Row(one, one.id === own));
    return this.rows.get(one.id);
  }

  update(store, own) {
    const all = ranked(store.instances);
    const sum = together(store);
    const troubles = troublesSaid(all);
    const said = storeSaid(store);
    this.tiles.store.update(said.word, null, said);
    const isRead = store.readSecondsAgo !== undefined; // before the first read, the number of instances is unknown, not 0
    this.tiles.instances.update(isRead ? String(all.length) : NONE, null, troubles === "" ? {} : { weight: STATES[all[0].state].weight, sentence: troubles });
    this.tiles.calls.update(isRead ? perSecond(sum.calls) : NONE);
    this.tiles.retries.update(isRead ? perSecond(sum.retries) : NONE);
    this.tiles.ratio.update(percent(sum.ratio), null, ratioSaid(sum));
    const shown = all.slice(0, SHOWN);
    for (const one of shown) this.row(one, own).update(one);
    arrange(this.body, shown.map((one) => this.row(one, own).node));
    for (const id of this.rows.keys()) if (!shown.some((one) => one.id === id)) this.rows.delete(id);
    const read = !isRead ? "The list of instances has not been read yet." : `The list of instances was read ${ms(store.readSecondsAgo * 1000)} ago.`;
    text(this.note, all.length > SHOWN ? `${read} The worst ${SHOWN} of ${plural(all.length, "instance")} are shown.` : read);
    fill(this.budgets, store.budgets.map((each) => this.budget(each)));
  }

  budget(each) {
    const cells = [each.endpoint, percent(each.percent / 100), plural(each.left, "retry", "retries"), String(each.live), each.degraded ? "△ on its own share" : "● leased"];
    return h("tr", {}, h("th", { scope: "row" }, each.service), cells.map((cell) => h("td", {}, cell)));
  }
}

export class FleetView {
  title = "Fleet";

  constructor(page) {
    this.page = page;
    this.stores = new Map();
    this.askedAt = 0;
    this.asking = false;
    this.ended = false;
    this.empty = h("p", { class: "empty" }, "Asking…");
    this.list = h("div", {});
    this.node = h("div", {}, h("h1", {}, "Fleet"), this.empty, this.list);
  }

  update() {
    if (!this.asking && Date.now() - this.askedAt >= EVERY) this.ask();
  }

  async ask() {
    this.asking = true;
    this.askedAt = Date.now();
    try {
      const fleet = await this.page.api.get("/api/fleet");
      if (!this.ended) this.show(fleet);
    } catch {
      // the link in the header shows it
    }
    this.asking = false;
  }

  show({ id, stores }) {
    this.empty.hidden = stores.length > 0;
    text(this.empty, "This gateway has no fleet: its policy has no shared budget.");
    const key = ({ store, fleet }) => `${fleet} ${store}`;
    for (const store of stores) {
      if (!this.stores.has(key(store))) this.stores.set(key(store), new Store(store));
      this.stores.get(key(store)).update(store, id);
    }
    arrange(this.list, stores.map((store) => this.stores.get(key(store)).node));
  }

  end() {
    this.ended = true;
  }
}
