// SPDX-License-Identifier: MIT
//
// The latest decisions, and each in full: every attempt, every wait, the reason, the numbers behind the reason, and the change
// that would have led to another decision.

import { arrange, fill, h, text, wide } from "./dom.js";
import { NONE, clock, ms, number, plural, words } from "./format.js";

const EVERY = 2000;
const UNITS = {
  ms,
  retries: (value) => `${number(value)} ${value === 1 ? "retry" : "retries"}`,
  attempts: (value) => plural(value, "attempt"),
  slots: (value) => plural(value, "slot"),
  calls: (value) => plural(value, "call"),
  percent: (value) => `${number(value)} %`,
};

const keyOf = (decision) => `${decision.time} ${decision.service} ${decision.target} ${decision.tookMs}`;
const good = (decision) => decision.reason === "ok" || decision.reason === "permanent";

/** A list that fetches the latest decisions at update(). It does not change while one of its decisions is open. */
export class DecisionList {
  constructor(page, { service = "", limit = 100, compact = false, shown = () => true } = {}) {
    Object.assign(this, { page, service, limit, compact, shown });
    this.asked = 0;
    this.open = null;
    this.paused = false;
    this.list = [];
    this.made = new Map(); // rows by key
    this.still = h("p", { class: "note", role: "status" });
    this.rows = h("ul", { class: "decisions" });
    this.node = h("div", {}, this.still, this.rows);
  }

  update(force = false) {
    if ((!force && (this.paused || this.open !== null || Date.now() - this.asked < EVERY)) || this.asking) return;
    this.asked = Date.now();
    this.ask();
  }

  async ask() {
    this.asking = true;
    try {
      const service = this.service === "" ? "" : `&service=${encodeURIComponent(this.service)}`;
      this.list = (await this.page.api.get(`/api/decisions?limit=${this.limit}${service}`)).decisions;
      this.show();
    } catch {
      // the link in the header shows it
    }
    this.asking = false;
  }

  // A decision never changes, so its row is made once, and keeps the keyboard focus while other rows come and go.
  show() {
    const shown = this.list.filter((decision) => this.shown(decision));
    const empty = this.list.length === 0 ? "No decisions yet. The list has every call that is retried, refused or fails, and one in 64 of the other calls." : "No decision matches.";
    const before = this.made;
    this.made = new Map(shown.map((decision) => [keyOf(decision), before.get(keyOf(decision)) ?? this.row(decision)]));
    arrange(this.rows, shown.length > 0 ? [...this.made.values()] : [h("li", { class: "empty" }, empty)]);
  }

  row(decision) {
    const detail = h("div", { class: "detail", hidden: true });
    const summary = [
      h("span", { class: "sign", "data-good": good(decision) ? "yes" : "no" }, good(decision) ? "✓" : "✗"),
      h("span", { class: "d-time" }, clock(decision.time, true)),
      h("span", { class: "d-what" }, this.compact ? decision.endpoint : `${decision.service} / ${decision.endpoint}`),
      h("span", { class: "d-target" }, `${decision.method} ${decision.target}`),
      h("span", { class: "d-status" }, decision.status ?? NONE),
      h("span", { class: "d-reason" }, words(decision.reason)),
      h("span", { class: "d-attempts" }, plural(decision.attempts, "attempt")),
      h("span", { class: "d-took" }, ms(decision.tookMs)),
    ];
    const button = h("button", { type: "button", class: "d-row", "aria-expanded": "false" }, summary);
    button.addEventListener("click", () => this.toggle(button, detail, decision));
    return h("li", {}, button, detail);
  }

  /** No decision is open any more. */
  close() {
    for (const other of this.rows.querySelectorAll("[aria-expanded=true]")) {
      other.setAttribute("aria-expanded", "false");
      other.nextElementSibling.hidden = true;
    }
    this.open = null;
    text(this.still, "");
  }

  toggle(button, detail, decision) {
    const opens = detail.hidden;
    this.close();
    if (!opens) return;
    this.open = keyOf(decision);
    fill(detail, detailOf(decision));
    detail.hidden = false;
    button.setAttribute("aria-expanded", "true");
    text(this.still, "The list is paused while a decision is open.");
  }
}

/* ---- one decision in full ---- */

function detailOf(decision) {
  return [
    h("p", { class: "why" }, h("strong", {}, words(decision.reason)), `: ${decision.sentence}.`, " ", numbersOf(decision)),
    decision.would && h("p", {}, `In enforce mode, the decision would have been: ${words(decision.would)}.`),
    decision.change && h("p", { class: "change" }, h("span", { class: "tile-label" }, "What would change this decision"), decision.change),
    decision.attempt.length > 0 && timeline(decision),
    attemptTable(decision),
    h("p", { class: "note" }, [`took ${ms(decision.tookMs)} in all`, decision.gatedMs > 0 && `waited ${ms(decision.gatedMs)} in the gate`, decision.requestId && `request id ${decision.requestId}`].filter(Boolean).join(" · ")),
  ];
}

/** The value at the decision, and the value that it needed. An open breaker has only a time, which is in the advice. */
function numbersOf({ reason, have, need, unit }) {
  const said = UNITS[unit];
  if (said === undefined || have === undefined || reason === "breaker_open") return "";
  if (need === undefined) return `(${said(have)})`;
  return reason === "attempts_spent" ? `(${number(have)} of ${said(need)})` : `(had ${said(have)}, needed ${said(need)})`;
}

/** Waits and attempts, one under the other, along the call's time. */
function timeline(decision) {
  const total = Math.max(decision.tookMs, 0.001);
  const share = (value) => Math.min(100, (100 * value) / total);
  const at = (value) => `${share(value).toFixed(2)}%`;
  const height = 14;
  const bars = decision.attempt.flatMap((attempt, i) => {
    const y = i * (height + 4) + 2;
    const waited = attempt.waitedMs ?? 0;
    const width = Math.max(0.6, share(attempt.tookMs ?? total - attempt.sentMs)); // so that an attempt of 0 ms is visible
    return [
      waited > 0 && h("rect", { class: "t-wait", x: at(attempt.sentMs - waited), y: y + height / 2 - 1, width: at(waited), height: 2 }),
      h("rect", { class: attempt.outcome === "ok" ? "t-ok" : "t-bad", x: `${Math.min(share(attempt.sentMs), 99.4).toFixed(2)}%`, y, width: `${width.toFixed(2)}%`, height, rx: 2 }),
    ];
  });
  return h("svg", { class: "timeline", width: "100%", height: decision.attempt.length * (height + 4) + 2, "aria-hidden": "true" }, bars);
}

function attemptTable(decision) {
  if (decision.attempt.length === 0) return h("p", {}, "No attempt was sent.");
  const rows = decision.attempt.map((attempt) => {
    const how = attempt.open ? "in progress" : words(attempt.outcome);
    const what = attempt.number === 0 ? "first attempt" : attempt.hedge ? `hedge ${attempt.number}` : `retry ${attempt.number}`;
    const cells = [attempt.waitedMs === undefined ? NONE : ms(attempt.waitedMs), ms(attempt.sentMs), attempt.host ?? NONE, how, attempt.status ?? NONE, ms(attempt.tookMs)];
    return h("tr", {}, h("th", { scope: "row" }, what), cells.map((cell) => h("td", {}, cell)));
  });
  const labels = ["", "Waited before", "Sent after", "Host", "Outcome", "Status", "Took"];
  const head = h("tr", {}, labels.map((label) => (label === "" ? h("td", {}) : h("th", { scope: "col" }, label))));
  return wide("Attempts", h("table", {}, h("thead", {}, head), h("tbody", {}, rows)));
}

/* ---- the page ---- */

export class DecisionsView {
  title = "Decisions";

  constructor(page, query) {
    this.page = page;
    this.service = h("select", { id: "d-service", onchange: () => this.ask() }, h("option", { value: "" }, "all services"));
    this.words = h("input", { id: "d-words", type: "search", placeholder: "path, reason, status…", oninput: () => this.list.show() });
    this.onlyBad = h("input", { type: "checkbox", onchange: () => this.list.show() });
    this.pause = h("input", { type: "checkbox", onchange: () => (this.list.paused = this.pause.checked) });
    this.wanted = query.get("service") ?? "";
    this.list = new DecisionList(page, { service: this.wanted, limit: 100, shown: (decision) => this.isShown(decision) });
    this.node = h(
      "div",
      {},
      h("h1", {}, "Decisions"),
      h("p", { class: "note" }, "The latest calls that were retried, refused or failed, and one in 64 of the other calls. Open a call to see the reason."),
      h(
        "div",
        { class: "tools" },
        h("label", { for: "d-service" }, "Service"),
        this.service,
        h("label", { for: "d-words" }, "Filter"),
        this.words,
        h("label", { class: "check" }, this.onlyBad, " only failed calls"),
        h("label", { class: "check" }, this.pause, " pause the list"),
      ),
      this.list.node,
    );
    this.list.update(true);
  }

  isShown(decision) {
    const wanted = this.words.value.trim().toLowerCase();
    const all = `${decision.service} ${decision.endpoint} ${decision.method} ${decision.target} ${decision.status} ${decision.reason} ${words(decision.reason)} ${decision.requestId ?? ""}`;
    return (!this.onlyBad.checked || !good(decision)) && all.toLowerCase().includes(wanted);
  }

  ask() {
    this.wanted = this.service.value;
    this.list.service = this.wanted;
    this.list.close();
    this.list.update(true);
  }

  update() {
    const names = [...this.page.live.services.keys()];
    if (this.names !== names.join("\n")) {
      this.names = names.join("\n");
      fill(this.service, h("option", { value: "" }, "all services"), names.map((name) => h("option", { value: name, selected: name === this.wanted }, name)));
    }
    this.list.update();
  }

  end() {}
}
