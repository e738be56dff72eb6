// SPDX-License-Identifier: MIT
//
// The breaker of one endpoint: its state, its earlier states, and the operator's orders to it.

import { confirmed } from "./dialog.js";
import { announce, attribute, fill, h, text } from "./dom.js";
import { clock, count, duration, ms, plural, words } from "./format.js";

const SIGNS = { CLOSED: "●", HALF_OPEN: "◧", OPEN: "■", FORCED_OPEN: "■", DISABLED: "○", METRICS_ONLY: "○" };
const ORDERED = ["FORCED_OPEN", "DISABLED", "METRICS_ONLY"];

/** How long the breaker stayed in a state. An outage is one row, however many probes failed in it. */
export function stayed({ since, until, probesFailed }) {
  const long = until === undefined ? " since then" : ` for ${duration(until - since)}`;
  return probesFailed > 0 ? `${long}, ${plural(probesFailed, "probe")} failed` : long;
}

export class BreakerPanel {
  constructor(page, service, changed) {
    this.page = page;
    this.service = service;
    this.changed = changed;
    this.sign = h("span", { class: "sign", "aria-hidden": "true" });
    this.word = h("strong", { "data-figure": "breaker" });
    this.more = h("span", { class: "note" });
    this.force = h("button", { type: "button", class: "danger", onclick: () => this.order("forced_open") }, "Force open…");
    this.release = h("button", { type: "button", onclick: () => this.order("reset") }, "Release…");
    this.problem = h("p", { class: "bad", role: "alert", hidden: true });
    this.moves = h("ol", { class: "moves" });
    this.node = h(
      "section",
      { "aria-labelledby": "breaker-title", class: "breaker" },
      h("h2", { id: "breaker-title" }, "Breaker"),
      h("p", { class: "breaker-state" }, this.sign, " ", this.word, " ", this.more),
      h("div", { class: "buttons left" }, this.force, this.release),
      this.problem,
      h("h3", {}, "Earlier states"),
      this.moves,
    );
  }

  choose(endpoint) {
    this.endpoint = endpoint;
    fill(this.moves);
    this.problem.hidden = true;
  }

  update(breaker) {
    const share = breaker.calls > 0 ? `${count(breaker.failed)} of ${plural(breaker.calls, "call")} in its window failed` : "no calls in its window";
    const when = breaker.retestInMs > 0 ? `in ${ms(breaker.retestInMs)}` : "with the next call";
    const retest = breaker.retestInMs === undefined ? "" : ` · probes again ${when}`;
    attribute(this.node, "data-state", breaker.state);
    text(this.sign, SIGNS[breaker.state]);
    text(this.word, words(breaker.state));
    text(this.more, `· ${share}${retest}`);
    this.force.disabled = breaker.state === "FORCED_OPEN";
    this.release.disabled = !ORDERED.includes(breaker.state) && breaker.state !== "OPEN";
  }

  /** The newest state on top. That the breaker was closed before its first change is left out. */
  moved(states) {
    const rows = states.filter((each, i) => i > 0 || each.state !== "CLOSED").reverse().map((stay) =>
      h("li", {}, h("time", { datetime: new Date(stay.since).toISOString() }, clock(stay.since)), " ", h("strong", {}, words(stay.state)), stayed(stay)));
    fill(this.moves, rows.length > 0 ? rows : h("li", { class: "note" }, "It was always closed."));
  }

  async order(state) {
    const which = `${this.service} / ${this.endpoint}`;
    const question =
      state === "forced_open"
        ? {
            title: `Force the breaker of ${which} open?`,
            sentences: ["Every call to this endpoint is refused with 503 breaker_open until you release the breaker. A reload does not release it; a restart does."],
            yes: "Force open",
          }
        : {
            title: `Release the breaker of ${which}?`,
            sentences: ["The breaker closes with an empty window and lets calls pass. It opens again by the policy's rules."],
            yes: "Release",
            danger: false,
          };
    if (!(await confirmed(question))) return;
    try {
      await this.page.api.post(`/api/services/${encodeURIComponent(this.service)}/breaker`, { state, endpoint: this.endpoint });
      this.problem.hidden = true;
      announce(state === "forced_open" ? "The breaker is forced open." : "The breaker is released.");
    } catch (problem) {
      this.problem.hidden = false;
      text(this.problem, `✗ ${problem.message}`);
    }
    this.changed();
  }
}
