// SPDX-License-Identifier: MIT
//
// Charts: lines over time (by uPlot, a global if the build had it), histograms and sparklines. Lines differ by dash as
// well as by colour, and every chart has a legend in words with the latest values, so that no fact is shown by colour, or
// by a picture, alone. Colours are the style sheet's --series-1 to --series-6.

import { attribute, fill, h, text } from "./dom.js";
import { NONE, clock, number } from "./format.js";

const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [1, 2], [10, 4]];
const HEIGHT = 150;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function translucent(hex, alpha) {
  const part = (at) => Number.parseInt(hex.slice(at, at + 2), 16);
  return /^#[0-9a-f]{6}$/i.test(hex) ? `rgba(${part(1)}, ${part(3)}, ${part(5)}, ${alpha})` : "transparent";
}

function swatch(slot) {
  return h(
    "svg",
    { width: 22, height: 10, "aria-hidden": "true", class: "swatch" },
    h("line", { x1: 0, y1: 5, x2: 22, y2: 5, class: `stroke-${slot}`, "stroke-dasharray": DASHES[slot - 1].join(" ") }),
  );
}

/**
 * Lines over time.
 *   title, note      the quantity, and a sentence about its meaning
 *   series           [{label, slot: 1..6, fill, far, ends}]: slot picks colour and dash; a far one does not flatten the others;
 *                    one that ends before the others has its last value in the legend
 *   format           a number as text
 *   most, least      values that the scale includes, whatever the data
 *   shortest         the least number of seconds on the time axis
 *   levels           words for 0, 1, 2...: a line in steps between named states
 *   marks            (chart, context, box) => ...: draws behind the lines, to shade a time
 */
export class TimeChart {
  constructor(options) {
    this.options = { format: number, most: 0, least: 0, shortest: 60, ...options };
    this.values = this.options.series.map(() => h("span", { class: "value" }, NONE));
    this.plotPlace = h("div", { class: "plot", role: "img", "aria-label": this.options.title });
    this.when = h("span", { class: "when" });
    this.node = h(
      "figure",
      { class: "chart" },
      h("figcaption", {}, h("h3", {}, this.options.title, " ", this.when), h("p", { class: "note" }, this.options.note)),
      this.plotPlace,
      h(
        "ul",
        { class: "legend" },
        this.options.series.map((line, i) => h("li", {}, swatch(line.slot), `${line.label} `, this.values[i])),
      ),
    );
    this.data = [[], ...this.options.series.map(() => [])];
    this.span = null; // from and to, in seconds since 1970; null: the time of the data
    this.plot = null;
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.plotPlace);
    this.themed = () => this.plot?.redraw(false, true);
    document.addEventListener("themechange", this.themed);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", this.themed);
  }

  /** times in seconds since 1970; one array of values for each series, null where a value is missing. */
  update(times, ...columns) {
    this.data = [times, ...columns];
    if (globalThis.uPlot === undefined) {
      text(this.plotPlace, "This build has no charts: uPlot was missing when it was built.");
    } else if (this.plot === null) {
      this.begin();
    } else {
      this.plot.setData(this.data);
    }
    this.legend(null);
  }

  begin() {
    const width = this.plotPlace.clientWidth;
    if (width === 0) return;
    this.plot = new globalThis.uPlot(this.plotOptions(width), this.data, this.plotPlace);
  }

  plotOptions(width) {
    const { series, format, levels, marks, shortest } = this.options;
    const axis = { stroke: () => colour("--muted"), grid: { stroke: () => colour("--grid"), width: 1 }, ticks: { show: false } };
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: "becalm" }, drag: { x: false, y: false }, points: { size: 6 } },
      scales: { x: { time: true, range: (u, low, high) => this.span ?? (high === null ? [Date.now() / 1000 - shortest, Date.now() / 1000] : [Math.min(low, high - shortest), high]) }, y: { range: (u, low, high) => this.scale(low, high) } },
      axes: [
        { ...axis, space: 70, values: (u, splits) => splits.map((at) => this.tick(u, at)), size: 26, font: "12px system-ui" },
        {
          ...axis,
          size: 62,
          space: levels ? 10 : 32,
          font: "12px system-ui",
          splits: levels ? () => levels.map((_, i) => i) : undefined,
          values: (u, splits) => splits.map((at) => (levels ? (levels[at] ?? "") : format(at))),
        },
      ],
      series: [{}, ...series.map((line) => this.line(line))],
      hooks: {
        setCursor: [(u) => this.legend(u.cursor.idx)],
        drawClear: marks ? [(u) => marks(u, u.ctx, u.bbox)] : [],
      },
    };
  }

  line({ label, slot, fill: filled, far }) {
    const name = `--series-${slot}`;
    return {
      label,
      auto: !far,
      stroke: () => colour(name),
      fill: filled ? () => translucent(colour(name), 0.14) : undefined,
      width: 1.75,
      dash: DASHES[slot - 1],
      points: { show: (u, index) => isScattered(u.data[index]), size: 5 },
      paths: this.options.levels ? globalThis.uPlot.paths.stepped({ align: 1 }) : undefined,
    };
  }

  scale(low, high) {
    const { levels, most, least } = this.options;
    if (levels) return [-0.2, levels.length - 0.8];
    const top = Math.max(most, high ?? 0);
    return [Math.min(least, low ?? 0), (Math.max(top, this.near(3 * top)) || 1) * 1.1];
  }

  // The scale includes a far line where it comes near the others, such as a limit that is nearly reached.
  near(most) {
    let nearest = 0;
    this.options.series.forEach((line, i) => {
      if (!line.far) return;
      for (const value of this.data[i + 1]) if (value !== null && value <= most) nearest = Math.max(nearest, value);
    });
    return nearest;
  }

  tick(u, at) {
    const span = (u.scales.x.max ?? 0) - (u.scales.x.min ?? 0);
    const whole = clock(at * 1000);
    return span > 900 ? whole.slice(0, 5) : whole;
  }

  /** The values at the cursor, or the latest. */
  legend(index) {
    const last = this.data[0].length - 1;
    const at = index ?? last;
    const { format, levels, series, title } = this.options;
    text(this.when, index === null || index === undefined || at < 0 ? "" : `at ${clock(this.data[0][at] * 1000)}`);
    const said = series.map((line, i) => {
      const isOver = line.ends && at === last;
      const value = at < 0 ? undefined : isOver ? this.data[i + 1].findLast((each) => each !== null) : this.data[i + 1][at];
      const shown = value === undefined || value === null ? NONE : levels ? (levels[value] ?? NONE) : format(value);
      text(this.values[i], shown);
      return `${line.label} ${shown}`;
    });
    if (at === last) attribute(this.plotPlace, "aria-label", `${title}: ${said.join(", ")}`);
  }

  resize() {
    const width = this.plotPlace.clientWidth;
    if (width === 0) return;
    if (this.plot === null && globalThis.uPlot !== undefined && this.data[0].length > 0) this.begin();
    else this.plot?.setSize({ width, height: HEIGHT });
  }

  end() {
    this.watcher.disconnect();
    document.removeEventListener("themechange", this.themed);
    matchMedia("(prefers-color-scheme: dark)").removeEventListener("change", this.themed);
    this.plot?.destroy();
    this.node.remove();
  }
}

/** True: there are too few values for a visible line. */
function isScattered(values) {
  let known = 0;
  for (const value of values) if (value !== null && value !== undefined && ++known > 3) return false;
  return true;
}

/** A histogram in plain SVG: the labels of its buckets and the count in each. */
export class Bars {
  constructor({ title, note }) {
    this.title = title;
    this.place = h("div", { class: "bars", role: "img", "aria-label": title });
    this.summary = h("p", { class: "note" });
    this.node = h("figure", { class: "chart" }, h("figcaption", {}, h("h3", {}, title), h("p", { class: "note" }, note)), this.place, this.summary);
  }

  update(labels, counts, summary) {
    const most = Math.max(1, ...counts);
    const width = 100 / Math.max(1, counts.length);
    const bars = counts.map((value, i) => {
      const height = value === 0 ? 0 : Math.max(2, (100 * value) / most);
      return h("rect", { x: `${i * width + width * 0.1}%`, y: `${100 - height}%`, width: `${width * 0.8}%`, height: `${height}%`, class: "fill-1" });
    });
    fill(
      this.place,
      h("svg", { class: "bars-plot", "aria-hidden": "true" }, bars),
      h("div", { class: "bars-axis", "aria-hidden": "true" }, labels.map((label) => h("span", {}, label))),
    );
    const said = labels.map((label, i) => (counts[i] > 0 ? `${label}: ${number(counts[i])}` : null)).filter(Boolean);
    attribute(this.place, "aria-label", `${this.title}: ${said.join(", ") || "nothing yet"}`);
    text(this.summary, summary ?? "");
  }

  end() {
    this.node.remove();
  }
}

/** A line as small as a word. update(values): the newest last; only their shape is shown. */
export class Sparkline {
  constructor({ width = 96, height = 22, slot = 1 } = {}) {
    this.width = width;
    this.height = height;
    this.path = h("path", { class: `spark stroke-${slot}` });
    this.area = h("path", { class: `spark-area fill-${slot}` });
    this.node = h(
      "svg",
      { class: "sparkline", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", preserveAspectRatio: "none" },
      this.area,
      this.path,
    );
  }

  update(values, slots = values.length) {
    let most = 0;
    for (const value of values) most = Math.max(most, value);
    const step = this.width / Math.max(1, slots - 1);
    const begin = this.width - step * (values.length - 1);
    let line = "";
    for (let i = 0; i < values.length; i++) {
      const y = this.height - 1.5 - (most > 0 ? (values[i] / most) * (this.height - 3) : 0);
      line += `${i === 0 ? "M" : "L"}${(begin + i * step).toFixed(1)} ${y.toFixed(1)}`;
    }
    attribute(this.path, "d", line);
    attribute(this.area, "d", line === "" ? "" : `${line}L${this.width} ${this.height}L${begin.toFixed(1)} ${this.height}Z`);
  }
}
