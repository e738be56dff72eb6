// SPDX-License-Identifier: MIT
//
// One lane of the demonstration: its figures, its chain of services, and its curves.

import { TimeChart } from "./charts.js";
import { attribute, fill, h, text } from "./dom.js";
import { afterOf, refusalsOf, simulatedOf, successOf } from "./demo_story.js";
import { NONE, count, number, perSecond, percent, times, words } from "./format.js";

const WINDOW = 180; // ticks that are drawn: 90 s
const SHORTEST = 15; // seconds, so that the first storm fills the chart
const BAR = 60; // pixels, for 3 x 3 x 3 times the load of the users
const TITLES = {
  naive: ["Naive retries", "Up to three attempts at every hop, without a wait between them."],
  becalm: ["Becalm", "The default policy: up to three attempts, within a budget, a limit and a breaker."],
};

const sum = (values) => values.reduce((all, value) => all + value, 0);

function level(share) {
  return share >= 0.95 ? "good" : share >= 0.5 ? "warn" : "bad";
}

class Figure {
  constructor(name, label) {
    this.value = h("span", { class: "tile-value", dataset: { figure: name } }, NONE);
    this.more = h("span", { class: "note", dataset: { more: name } });
    this.node = h("li", { class: "tile" }, h("span", { class: "tile-label" }, label), this.value, this.more);
  }

  update(value, more, word) {
    text(this.value, value);
    text(this.more, more);
    attribute(this.value, "data-level", word);
  }
}

/** The rows of the table, about each service and the gateway in front of it: [name, in words]. */
const ROWS = [
  ["load", "requests a second"],
  ["inFlight", "in flight, of its limit"],
  ["refused", "refused a second"],
  ["why", "refused since the fault"],
  ["budget", "retries left to send"],
  ["breaker", "breaker"],
  ["gate", "waiting in the gateway"],
  ["queue", "waiting in the service"],
];

const isNone = (value) => value === null || value === undefined;

/** A column of the chain: a service, and the gateway in front of it. */
class Hop {
  constructor(name) {
    this.fill = h("rect", { class: "load-fill", height: 12, width: 0, rx: 2 });
    this.bar = h("svg", { class: "load-bar", width: BAR, height: 12, "aria-hidden": "true" }, h("rect", { class: "load-back", width: BAR, height: 12, rx: 2 }), this.fill);
    this.cell = Object.fromEntries(ROWS.map(([row]) => [row, h("td", { dataset: { service: name, cell: row } }, NONE)]));
    this.load = h("span", { class: "load" }, NONE);
    fill(this.cell.load, this.bar, this.load);
    this.head = h("th", { scope: "col" }, name);
  }

  update(service, { offered, perTick, steadyTicks }) {
    const recent = (name) => service.samples[name].slice(-steadyTicks);
    const last = (name) => service.samples[name].at(-1);
    const load = (sum(recent("arrivals")) / Math.max(1, recent("arrivals").length)) * perTick;
    this.perSecond = load;
    const { inFlight, refused, why, budget, breaker, gate, queue } = this.cell;
    text(this.load, perSecond(load));
    attribute(this.fill, "width", Math.min(BAR, (BAR * load) / (27 * offered)).toFixed(1));
    attribute(this.fill, "data-over", load > 1.5 * offered ? "" : null);
    text(inFlight, `${last("inFlight") ?? 0} ${isNone(last("limit")) ? "(no limit)" : `of ${count(last("limit"))}`}`);
    text(refused, number((sum(recent("refused")) + sum(recent("shed"))) / (recent("refused").length / perTick)));
    text(why, refusalsOf(service));
    text(budget, isNone(last("budgetMilli")) ? "no limit" : number(last("budgetMilli") / 1000));
    text(breaker, service.breakerState === undefined ? "none" : words(service.breakerState));
    text(gate, isNone(last("limit")) ? "none" : last("gate"));
    text(queue, last("queue") ?? 0);
  }
}

const NODES = ["users", "front", "middle", "back"];
const NODE = { width: 62, height: 26 };
const GAP = 68;
const THICKEST = 27; // 3 x 3 x 3 times the load of the users

/** The thickness of a line that carries `factor` times the load of the users. Linear, so that 27 times looks like 27 times. */
export function thicknessOf(factor) {
  return Number.isFinite(factor) ? 1 + (29 * Math.min(Math.max(factor, 0), THICKEST)) / THICKEST : 1;
}

/** users > front > middle > back: the thickness of each arrow shows its load. */
class Flow {
  constructor() {
    const at = (i) => i * (NODE.width + GAP);
    this.lines = NODES.slice(1).map((_, i) => h("line", { class: "flow-line", x1: at(i) + NODE.width, x2: at(i + 1) - 2, y1: 34, y2: 34 }));
    this.loads = this.lines.map((_, i) => h("text", { class: "flow-load", x: at(i) + NODE.width + GAP / 2, y: 12 }));
    this.nodes = NODES.map((name, i) => h("rect", { class: "flow-node", x: at(i) + 1, y: 34 - NODE.height / 2, width: NODE.width - 2, height: NODE.height, rx: 6 }));
    const names = NODES.map((name, i) => h("text", { x: at(i) + NODE.width / 2, y: 39 }, name));
    this.node = h("svg", { class: "flow", viewBox: `0 0 ${at(3) + NODE.width} 52`, "aria-hidden": "true" }, this.lines.map((line, i) => [line, this.loads[i]]), this.nodes, names);
  }

  /** `loads`: requests a second at front, middle and back. */
  update(loads, offered, hurt) {
    loads.forEach((load, i) => {
      attribute(this.lines[i], "stroke-width", thicknessOf(load / offered).toFixed(1));
      attribute(this.lines[i], "data-over", load > 1.5 * offered ? "" : null);
      text(this.loads[i], perSecond(load));
    });
    attribute(this.nodes.at(-1), "data-hurt", hurt ? "" : null);
  }
}

/** Zero, the load of the users and 27 times as much in one picture: linear near 0, logarithmic further up. */
class LoadChart extends TimeChart {
  plotOptions(width) {
    const options = super.plotOptions(width);
    Object.assign(options.scales.y, { distr: 4, asinh: 20 });
    const splits = (plot, axis, low, high) => [0, high > 1000 ? 0 : 10, 50, 200, 1000, 4000, 20000].filter((each) => each <= high);
    Object.assign(options.axes[1], { splits, filter: (plot, all) => all });
    return options;
  }
}

/** Behind the lines: the times of faults. */
function shade(lane) {
  return (plot, context, box) => {
    context.save();
    context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--bad-back");
    for (const time of lane.hurt) {
      const from = Math.max(plot.valToPos(time.from, "x", true), box.left);
      const to = Math.min(plot.valToPos(time.to, "x", true), box.left + box.width);
      if (to > from) context.fillRect(from, box.top, to - from, box.height);
    }
    context.restore();
  };
}

export class Lane {
  constructor(name) {
    const [title, about] = TITLES[name];
    this.hurt = [];
    this.figures = {
      factor: new Figure("factor", "at back for each call"),
      success: new Figure("success", "success"),
      after: new Figure("after", "after healing"),
    };
    this.hops = null;
    this.flow = new Flow();
    this.strip = { factor: h("strong", {}, NONE), success: h("strong", {}, NONE) };
    this.brief = h("p", {}, h("span", { class: "note" }, `${title}: `), this.strip.factor, " at back, ", this.strip.success, " success");
    this.heads = h("tr");
    this.rows = h("tbody");
    const marks = shade(this);
    this.loadChart = new LoadChart({
      title: "Requests that reach back, a second",
      note: "and the calls of users; one logarithmic scale for both lanes",
      series: [
        { label: "reach back", slot: 1, fill: true },
        { label: "calls of users", slot: 2 },
        { label: "simulated", slot: 3, ends: true },
      ],
      shortest: SHORTEST,
      format: number,
      marks,
    });
    this.successChart = new TimeChart({
      title: "Success",
      note: "of the calls that ended in each half second",
      series: [
        { label: "good answers within 3 s", slot: 1, fill: true },
        { label: "simulated", slot: 3, ends: true },
      ],
      shortest: SHORTEST,
      format: percent,
      most: 1,
      marks,
    });
    this.dashboard = h("a", { target: "_blank", rel: "noopener" }, "Dashboard of its gateway");
    this.node = h(
      "section",
      { class: "lane", dataset: { lane: name }, "aria-label": title },
      h("h2", {}, title),
      h("p", { class: "note" }, about),
      h("ul", { class: "tiles" }, Object.values(this.figures).map((figure) => figure.node)),
      this.flow.node,
      this.loadChart.node,
      this.successChart.node,
      h("table", { class: "chain", "aria-label": `The chain of ${title}` }, h("thead", {}, this.heads), this.rows),
      h("p", { class: "note" }, this.dashboard, " · ", h("a", { href: `/api/policy/${name}`, target: "_blank", rel: "noopener" }, "its policy")),
    );
  }

  update(state, index, { most, hurt }) {
    const lane = state.lanes[index];
    const perTick = 1000 / state.tickMs;
    if (this.hops === null) this.begin(lane);
    this.hops.forEach((hop, i) => hop.update(lane.services[i], { offered: state.offered, perTick, steadyTicks: state.steadyTicks }));
    this.flow.update(this.hops.map((hop) => hop.perSecond), state.offered, state.fault !== "healthy");
    attribute(this.dashboard, "href", `http://${lane.admin}/`);
    this.tell(state, lane);
    this.draw(state, lane, index, { most, hurt, perTick });
  }

  begin(lane) {
    this.hops = lane.services.map((service) => new Hop(service.name));
    fill(this.heads, h("th", { scope: "col" }, "service"), this.hops.map((hop) => hop.head));
    fill(this.rows, ROWS.map(([row, said]) => h("tr", {}, h("th", { scope: "row" }, said), this.hops.map((hop) => hop.cell[row]))));
  }

  tell(state, lane) {
    const back = lane.services.at(-1);
    const peak = lane.peakFactor === 0 ? "" : `${times(lane.peakFactor)} in the storm; `;
    this.figures.factor.update(
      times(lane.factor),
      `${peak}${count(back.arrivalsTotal)} for ${count(lane.begunTotal)} calls in all`,
      lane.factor > 3 ? "bad" : lane.factor > 1.5 ? "warn" : null,
    );
    this.figures.success.update(
      successOf(lane),
      `${count(lane.failedTotal)} failed so far; ${count(back.uselessTotal)} answers too late: the caller had gone`,
      lane.success === null ? (lane.waiting > 0 ? "warn" : null) : level(lane.success),
    );
    this.figures.after.update(...afterOf(state, lane));
    for (const [name, node] of Object.entries(this.strip)) {
      text(node, this.figures[name].value.textContent);
      attribute(node, "data-level", this.figures[name].value.getAttribute("data-level"));
    }
  }

  draw(state, lane, index, { most, hurt, perTick }) {
    const have = lane.samples.begun.length;
    const begin = Math.max(0, have - WINDOW);
    const cut = (values) => values.slice(begin);
    const time = (tick) => (state.startedMs + tick * state.tickMs) / 1000;
    const ticks = cut(lane.samples.begun).map((_, i) => state.first + begin + i);
    const simulated = simulatedOf(state, index, ticks, perTick);
    this.hurt = hurt.map(({ from, to }) => ({ from: time(from), to: time(to) }));
    this.loadChart.options.most = most;
    this.loadChart.update(
      ticks.map(time),
      cut(lane.services.at(-1).samples.arrivals).map((n) => n * perTick),
      ticks.map(() => state.offered),
      simulated.load,
    );
    const ended = cut(lane.samples.good).map((good, i) => [good, good + lane.samples.failed[begin + i]]);
    this.successChart.update(
      ticks.map(time),
      ended.map(([good, all]) => (all === 0 ? null : good / all)),
      simulated.success,
    );
  }
}
