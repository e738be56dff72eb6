# SPDX-License-Identifier: MIT
"""Real runs and simulated ones in one picture: for each world the load on a service and the success of calls."""

import html
import statistics

WIDTH, PANEL, GAP, TOP = 400, 90, 34, 40
LEFT, RIGHT = 46, 18
COLUMNS = 2

STYLE = """
svg{--page:#fff;--ink:#24292f;--faint:#8c959f;--fault:#f2e6d0;--band:#a8c7ee;--sim:#0b4f9e;--real:#c4320a}
@media (prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#e6edf3;--faint:#7d8590;--fault:#3a3020;--band:#274a75;
--sim:#79b8ff;--real:#ff8a5c}}
.page{fill:var(--page)}text{font:11px system-ui,sans-serif;fill:var(--ink)}.name{font-weight:600;font-size:12px}
.small{fill:var(--faint)}.axis{stroke:var(--faint);stroke-width:.6}.fault{fill:var(--fault)}
.band{fill:var(--band);opacity:.6}.sim{fill:none;stroke:var(--sim);stroke-width:1.8;stroke-dasharray:5 3}
.real{fill:none;stroke:var(--real);stroke-width:.9}
"""


def round_top(most):
    """The next of 1, 2, 3, 4, 6, 8, 10, 20 and so on."""
    step = 1
    while True:
        for factor in (1, 2, 3, 4, 6, 8):
            if most <= factor * step:
                return factor * step
        step *= 10


class Panel:
    def __init__(self, y, top, seconds):
        self.y, self.top, self.seconds = y, top, seconds

    def x(self, second):
        return LEFT + (WIDTH - LEFT - RIGHT) * second / self.seconds

    def height(self, value):
        return self.y + PANEL * (1 - min(value, self.top) / self.top)

    def points(self, curve):
        """The middle of each second; seconds without a value are left out."""
        return [f"{self.x(i + 0.5):.1f},{self.height(v):.1f}" for i, v in enumerate(curve) if v is not None]

    def line(self, name, curve):
        return f'<polyline class="{name}" points="{" ".join(self.points(curve))}"/>'

    def frame(self, fault, label, unit):
        parts = []
        if fault:
            at, over = self.x(fault["at"]), self.x(min(fault["over"], self.seconds))
            parts.append(f'<rect class="fault" x="{at:.1f}" y="{self.y}" width="{max(over - at, 1):.1f}" height="{PANEL}"/>')
        for value in (0, self.top / 2, self.top):
            y = self.height(value)
            parts.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" opacity=".4"/>')
            parts.append(f'<text class="small" x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:g}{unit}</text>')
        parts.append(f'<text x="{LEFT}" y="{self.y - 6}">{html.escape(label)}</text>')
        return parts


def success(run):
    return [100 * g / c if c else None for g, c in zip(run["good"], run["calls"])]


def spread(curves):
    """The least, the mean and the most of each second; None where no run has a value."""
    rows = [[v for v in second if v is not None] for second in zip(*curves)]
    return [(min(r), statistics.fmean(r), max(r)) if r else None for r in rows]


def curves(panel, real, simulated):
    seconds = spread(simulated)
    low = panel.points([s and s[0] for s in seconds])
    high = panel.points([s and s[2] for s in seconds])
    parts = [f'<polygon class="band" points="{" ".join(high + low[::-1])}"/>']
    parts += [panel.line("real", run) for run in real]
    return parts + [panel.line("sim", [s and s[1] for s in seconds])]


def world(result):
    plan = result["plan"]
    real, simulated = result["curves"]["real"], result["curves"]["others"]
    most = max(max(run["load"]) for run in real + simulated)
    load = Panel(TOP, round_top(most), plan["seconds"])
    good = Panel(TOP + PANEL + GAP, 100, plan["seconds"])
    parts = [f'<text class="name" x="{LEFT}" y="14">{html.escape(result["world"])}</text>']
    parts += load.frame(plan["fault"], f'requests a second at {result["service"]}', "")
    parts += curves(load, [r["load"] for r in real], [r["load"] for r in simulated])
    parts += good.frame(plan["fault"], "success of calls", " %")
    parts += curves(good, [success(r) for r in real], [success(r) for r in simulated])
    bottom = good.y + PANEL + 14
    for second in range(0, plan["seconds"] + 1, 10):
        parts.append(f'<text class="small" x="{good.x(second):.1f}" y="{bottom}" text-anchor="middle">{second} s</text>')
    return parts


def draw(results):
    columns = min(COLUMNS, len(results))
    cell = TOP + 2 * PANEL + GAP + 34
    rows = -(-len(results) // columns)
    width, height = columns * WIDTH, rows * cell + 34
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'role="img" aria-labelledby="real-title real-desc">',
        '<title id="real-title">Real proxies and the simulator, second by second</title>',
        '<desc id="real-desc">For each world the requests a second at a service and the success of calls: real runs as '
        'thin lines, the mean of simulated ones as a broken line with the band of their seeds.</desc>',
        f"<style>{STYLE}</style>", f'<rect class="page" width="{width}" height="{height}"/>',
        '<g transform="translate(44 18)"><line class="real" x1="0" x2="24" y1="-4" y2="-4"/>'
        '<text x="30" y="0">real becalm proxy, each run</text>'
        '<rect class="band" x="200" y="-10" width="24" height="12"/><line class="sim" x1="200" x2="224" y1="-4" y2="-4"/>'
        '<text x="230" y="0">becalm sim: mean and range of seeds</text></g>',
    ]
    for i, result in enumerate(results):
        out.append(f'<g transform="translate({i % columns * WIDTH} {34 + i // columns * cell})">')
        out += world(result)
        out.append("</g>")
    return "\n".join(out) + "\n</svg>\n"
