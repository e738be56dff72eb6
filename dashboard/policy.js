// SPDX-License-Identifier: MIT
//
// The policy in force, the source of each value, and a button that reloads the file and shows the errors in it.

import { announce, fill, h, text, wide } from "./dom.js";
import { plural } from "./format.js";

/** "budget.startTokens" may break before a part and before a word of a part, and nowhere else. */
function breakable(key) {
  return key.split(/(?<=\.)|(?=[A-Z])/).flatMap((part) => [h("wbr"), part]);
}

export class PolicyView {
  title = "Policy";

  constructor(page, query) {
    this.page = page;
    this.wanted = query.get("service");
    this.policy = null;
    this.tellsReload = false; // this page shows why the latest reload failed, so the notice above need not
    this.button = h("button", { type: "button", class: "primary", onclick: () => this.reload() }, "Reload the file");
    this.result = h("div", { role: "status" });
    this.about = h("p", { class: "note" });
    this.target = h("select", { id: "p-target", onchange: () => this.show() });
    this.filter = h("input", { id: "p-filter", type: "search", placeholder: "budget, 100ms…", oninput: () => this.show() });
    this.onlySet = h("input", { type: "checkbox", onchange: () => this.show() });
    this.inForce = h("p", {});
    this.rows = h("tbody");
    this.node = h(
      "div",
      {},
      h("div", { class: "heading" }, h("h1", {}, "Policy"), this.button),
      this.result,
      this.about,
      h(
        "div",
        { class: "tools" },
        h("label", { for: "p-target" }, "Target"),
        this.target,
        h("label", { for: "p-filter" }, "Filter"),
        this.filter,
        h("label", { class: "check" }, this.onlySet, " only values that the policy sets"),
      ),
      this.inForce,
      wide("Values", h("table", { class: "policy" }, h("thead", {}, h("tr", {}, ["Key", "Value", "From", "Meaning"].map((label) => h("th", { scope: "col" }, label)))), this.rows)),
    );
    this.ask();
  }

  async ask() {
    try {
      this.policy = await this.page.api.get("/api/policy");
    } catch (problem) {
      text(this.about, problem.message);
      return;
    }
    const chosen = this.target.value;
    text(this.about, `${this.policy.file} · role ${this.policy.role}${this.policy.gatewayRetries ? "" : " · gatewayRetries: false"}`);
    fill(this.target, this.policy.targets.map((target, i) => h("option", { value: i, selected: chosen === "" ? target.service === this.wanted && target.endpoint === "default" : String(i) === chosen }, `${target.service} / ${target.endpoint}`)));
    this.show();
  }

  show() {
    const target = this.policy?.targets[Number(this.target.value)];
    if (target === undefined) {
      fill(this.rows);
      return;
    }
    const force = target.inForce;
    text(this.inForce, `In force: ${plural(force.maxRetries, "retry", "retries")} at most, hedges ${force.hedge ? "on" : "off"}, limit ${force.limit}, mode ${force.mode}.`);
    const wanted = this.filter.value.trim().toLowerCase();
    const shown = target.values.filter((each) => `${each.key} ${each.value} ${each.sentence}`.toLowerCase().includes(wanted) && (!this.onlySet.checked || each.from !== "default"));
    fill(this.rows, shown.map((each) => this.row(each)));
  }

  row(each) {
    const where = each.line === undefined ? "" : ` ${each.file.split("/").at(-1)}:${each.line}:${each.column}`;
    return h(
      "tr",
      { "data-key": each.key, "data-written": each.from === "default" ? null : "yes" },
      h("th", { scope: "row" }, h("code", {}, breakable(each.key))),
      h("td", {}, h("code", {}, each.value)),
      h("td", { class: "from" }, each.from, where !== "" && h("code", { class: "where" }, where)),
      h("td", {}, each.sentence),
    );
  }

  async reload() {
    this.button.disabled = true;
    let answer;
    try {
      answer = await this.page.api.post("/api/reload");
    } catch (problem) {
      answer = problem.body?.diagnostics ? problem.body : { reloaded: false, diagnostics: [], why: problem.message };
    }
    this.button.disabled = false;
    this.tellsReload = !answer.reloaded;
    const said = answer.reloaded ? "✓ Reloaded." : `✗ Not reloaded: the earlier policy stays in force. ${answer.why ?? ""}`;
    fill(
      this.result,
      h("div", { class: answer.reloaded ? "notice good" : "notice bad" }, h("p", {}, said), answer.diagnostics.length > 0 && h("ul", { class: "diagnostics" }, answer.diagnostics.map((diag) => h("li", {}, h("code", {}, `${diag.file}:${diag.line}:${diag.column}`), ` ${diag.severity}: ${diag.message} `, h("code", {}, `[${diag.code}]`))))),
    );
    announce(said);
    this.page.askState();
    this.ask();
  }

  reloaded() {
    this.ask();
  }

  update() {}

  end() {}
}
