// SPDX-License-Identifier: MIT
//
// One lane of the demonstration: its figures, its chain of services, and its curves.

import { TimeChart } from "./charts.js";
import { attribute, fill, h, text } from "./dom.js";
import { NONE, count, number, perSecond, percent, times, words } from "./format.js";

const WINDOW = 180; // ticks that are drawn: 90 s
const SHORTEST = 15; // seconds: whoever comes for the first storm sees it large
const BAR = 60; // pixels, for 3 x 3 x 3 times what users ask for
const TITLES = {
  naive: ["Naive retries", "Three attempts at every hop, at once, whatever happens: as many write them."],
  becalm: ["Becalm", "The default policy: three attempts too, but within a budget, a limit and a breaker."],
};

const sum = (values) => values.reduce((all, value) => all + value, 0);

/** A ratio of two sums, or undefined. */
function ratio(over, under) {
  const all = sum(under);
  return all === 0 ? undefined : sum(over) / all;
}

function level(share) {
  return share === undefined ? null : share >= 0.95 ? "good" : share >= 0.5 ? "warn" : "bad";
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

/** A row of the chain: a service, and the gateway in front of it. */
class Hop {
  constructor(name) {
    this.fill = h("rect", { class: "load-fill", height: 12, width: 0, rx: 2 });
    this.bar = h("svg", { class: "load-bar", width: BAR, height: 12, "aria-hidden": "true" }, h("rect", { class: "load-back", width: BAR, height: 12, rx: 2 }), this.fill);
    this.cells = ["load", "factor", "refused", "budget", "breaker", "gate", "queue"].map((each) => h("td", { dataset: { cell: each } }, NONE));
    this.load = h("span", { class: "load" }, NONE);
    fill(this.cells[0], this.bar, this.load);
    this.node = h("tr", { dataset: { service: name } }, h("th", { scope: "row" }, name), this.cells);
  }

  update(service, lane, { offered, perTick, steadyTicks }) {
    const recent = (name) => service.samples[name].slice(-steadyTicks);
    const last = (name) => service.samples[name].at(-1);
    const load = (sum(recent("arrivals")) / Math.max(1, recent("arrivals").length)) * perTick;
    const [, factor, refused, budget, breaker, gate, queue] = this.cells;
    text(this.load, perSecond(load));
    attribute(this.fill, "width", Math.min(BAR, (BAR * load) / (27 * offered)).toFixed(1));
    attribute(this.fill, "data-over", load > 1.5 * offered ? "" : null);
    text(factor, times(ratio(recent("arrivals"), lane.samples.begun.slice(-steadyTicks))));
    text(refused, number((sum(recent("refused")) + sum(recent("shed"))) / (recent("refused").length / perTick)));
    text(budget, last("budgetMilli") === null || last("budgetMilli") === undefined ? "none" : number(last("budgetMilli") / 1000));
    text(breaker, service.breakerState === undefined ? "none" : words(service.breakerState));
    text(gate, last("limit") === null || last("limit") === undefined ? "none" : last("gate"));
    text(queue, last("queue") ?? 0);
  }
}

/** Behind the lines: the times in which back was hurt. */
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
      factor: new Figure("factor", "load at back"),
      success: new Figure("success", "success"),
      after: new Figure("after", "after healing"),
    };
    this.hops = null;
    this.rows = h("tbody");
    const marks = shade(this);
    this.loadChart = new TimeChart({
      title: "Requests that reach back, a second",
      note: "against what users ask for; the same scale in both lanes",
      series: [
        { label: "reach back", slot: 1, fill: true },
        { label: "users ask", slot: 2 },
        { label: "simulated", slot: 3 },
      ],
      shortest: SHORTEST,
      format: number,
      marks,
    });
    this.successChart = new TimeChart({
      title: "Success",
      note: "of the calls that ended then",
      series: [
        { label: "well within 3 s", slot: 1, fill: true },
        { label: "simulated", slot: 3 },
      ],
      shortest: SHORTEST,
      format: percent,
      most: 1,
      marks,
    });
    this.dashboard = h("a", { target: "_blank", rel: "noopener" }, "Its gateway's dashboard");
    this.node = h(
      "section",
      { class: "lane", dataset: { lane: name }, "aria-label": title },
      h("h2", {}, title),
      h("p", { class: "note" }, about),
      h("ul", { class: "tiles" }, Object.values(this.figures).map((figure) => figure.node)),
      h(
        "div",
        { class: "chain wide", tabindex: 0, role: "group", "aria-label": `The chain of ${title}` },
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, ["service", "load", "factor", "refused/s", "budget", "breaker", "gate", "queue"].map((each) => h("th", { scope: "col" }, each)))),
          this.rows,
        ),
        h("p", { class: "note" }, "Refused: retries and calls that the gateway did not let through. Budget: retries that it may still send. Gate, queue: who waits in the gateway, in the service."),
      ),
      h("div", { class: "charts" }, this.loadChart.node, this.successChart.node),
      h("p", { class: "note" }, this.dashboard, " · ", h("a", { href: `/api/policy/${name}`, target: "_blank", rel: "noopener" }, "its policy")),
    );
  }

  update(state, index, { most, hurt }) {
    const lane = state.lanes[index];
    const perTick = 1000 / state.tickMs;
    this.hops ??= lane.services.map((service) => new Hop(service.name));
    if (this.rows.childElementCount === 0) fill(this.rows, this.hops.map((hop) => hop.node));
    this.hops.forEach((hop, i) => hop.update(lane.services[i], lane, { offered: state.offered, perTick, steadyTicks: state.steadyTicks }));
    attribute(this.dashboard, "href", `http://${lane.admin}/`);
    this.tell(state, lane);
    this.draw(state, lane, index, { most, hurt, perTick });
  }

  tell(state, lane) {
    const back = lane.services.at(-1);
    const peak = lane.peakFactor === 0 ? "" : `${times(lane.peakFactor)} at worst; `;
    const fresh = state.ticks - state.healedTick < state.steadyTicks;
    const down = state.healedTick !== undefined && lane.recoveredTick === undefined;
    const seconds = (ticks) => `${((ticks * state.tickMs) / 1000).toFixed(1)} s`;
    this.figures.factor.update(
      times(lane.factor),
      `${peak}${count(back.arrivalsTotal)} for ${count(lane.begunTotal)} calls`,
      lane.factor > 3 ? "bad" : lane.factor > 1.5 ? "warn" : null,
    );
    this.figures.success.update(percent(lane.success), `${count(lane.failedTotal)} failed so far; ${count(back.uselessTotal)} answers for nobody`, level(lane.success));
    if (state.healedTick === undefined) this.figures.after.update(NONE, "heal back to see it", null);
    else if (down && fresh) this.figures.after.update("…", "just healed", null);
    else if (down) this.figures.after.update("still down", `${seconds(state.ticks - state.healedTick)} after healing`, "bad");
    else this.figures.after.update("back", `${seconds(lane.recoveredTick - state.healedTick)} after healing: 95 % success from then on`, "good");
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

/** The simulation at these ticks: its steps are seconds. */
export function simulatedOf(state, index, ticks, perTick) {
  const simulation = state.simulation;
  if (simulation?.lanes === undefined) return { load: ticks.map(() => null), success: ticks.map(() => null) };
  const lane = simulation.lanes[index];
  const second = (tick) => Math.floor((tick - simulation.fromTick) / perTick);
  const at = (values, tick) => (second(tick) < 0 ? null : (values[second(tick)] ?? null));
  return {
    load: ticks.map((tick) => at(lane.arrivals, tick)),
    success: ticks.map((tick) => {
      const begun = at(lane.begun, tick);
      return begun === null || begun === 0 ? null : at(lane.good, tick) / begun;
    }),
  };
}
