# SPDX-License-Identifier: MIT
"""A trace as a picture: a row for each span, a bar from its beginning to its end, below the span that it belongs to. Colour never says
alone how it ended."""

import html

from otlp import SERVER, tree

LEFT, RIGHT, TOP, ROW = 210, 80, 40, 24
WIDTH = 900
STYLE = """svg{--page:#fff;--ink:#24292f;--faint:#8c959f;--grid:#d8dee4;--call:#0b4f9e;--good:#2f7d4f;--bad:#c4320a;--gone:#8c959f}
@media (prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#e6edf3;--faint:#7d8590;--grid:#30363d;--call:#79b8ff;--good:#57b97f;--bad:#ff8a5c;--gone:#7d8590}}
.page{fill:var(--page)}text{font:11px system-ui,sans-serif;fill:var(--ink)}.small{fill:var(--faint)}.axis{stroke:var(--grid);stroke-width:.6}
.call{fill:var(--call)}.good{fill:var(--good)}.bad{fill:var(--bad)}.gone{fill:none;stroke:var(--gone);stroke-dasharray:4 2}"""


def words(span):
    """The label of a row."""
    who = span.resource["service.name"]
    if span.kind == SERVER:
        return f"{who}: call {span.name}"
    number = span.get("http.request.resend_count")
    which = "first attempt" if number is None else f"hedge {number}" if span.get("becalm.hedge") else f"retry {number}"
    return f"{who}: {which}"


def end(span):
    """How it ended, beside its bar."""
    status, outcome = span.get("http.response.status_code"), span.get("becalm.outcome")
    if outcome == "cancelled":
        return "cancelled"
    return str(status) if status else outcome or span.get("becalm.reason")


def look(span):
    if span.get("becalm.outcome") == "cancelled":
        return "gone"
    return "bad" if span.failed else "call" if span.kind == SERVER else "good"


def rows_of(spans):
    """[(depth, span)], each below its parent."""
    _, roots, children = tree(spans)
    rows = []

    def add(span, depth):
        rows.append((depth, span))
        for each in children(span):
            add(each, depth + 1)

    for root in roots:
        add(root, 0)
    return rows


def step_of(whole):
    """Milliseconds between two lines of the grid: at most ten of them."""
    return next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**6) if whole / step <= 10)


def draw(spans, title, description):
    rows = rows_of(spans)
    start = min(span.start for _, span in rows)
    whole = (max(span.end for _, span in rows) - start) / 1e6
    scale = (WIDTH - LEFT - RIGHT) / whole
    height = TOP + ROW * len(rows) + 12
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="trace-title trace-desc">',
        f'<title id="trace-title">{html.escape(title)}</title>',
        f'<desc id="trace-desc">{html.escape(description)}</desc>',
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
    ]
    step = step_of(whole)
    for n in range(int(whole / step) + 1):
        x = LEFT + n * step * scale
        out.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{height - 8}"/>')
        out.append(f'<text class="small" x="{x:.1f}" y="{TOP - 14}" text-anchor="middle">{n * step} ms</text>')
    for n, (depth, span) in enumerate(rows):
        y = TOP + ROW * n
        x, width = LEFT + (span.start - start) / 1e6 * scale, max((span.end - span.start) / 1e6 * scale, 1.5)
        out.append(f'<text x="{12 + 16 * depth}" y="{y + 12}">{html.escape(words(span))}</text>')
        out.append(f'<rect class="{look(span)}" x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="13" rx="2"/>')
        out.append(f'<text class="small" x="{x + width + 5:.1f}" y="{y + 12}">{html.escape(end(span))}</text>')
    return "\n".join([*out, "</svg>", ""])
