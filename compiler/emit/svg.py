"""The topology as a picture, SVG, drawn without Graphviz: stages from left to right, their nodes in columns.

A node stands right of all that it reads in its stage, as near as can be to the height of what it reads. The reason of a
status is the node's tooltip. Ways that pass a column have lanes between its boxes. Not for topologies of hundreds of
nodes: ways may cross.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from vsc.compiler.emit.layout import Arrow, Place, arrows, description, places, sink_description, sink_places
from vsc.plan import Plan
from vsc.plan.record import record

__all__ = ["emit_svg"]

_CHARACTER, _SMALL, _LINE, _PADDING = 7.3, 6.1, 15, 10
_GAP_X, _GAP_Y, _MARGIN, _HEAD, _LANE = 90, 18, 24, 22, 6
_FILL = {"stream": "#e8f1fb", "table": "#fdf3e0", "global table": "#f3e8fb", "sink": "#eeeeee"}
_STYLE = (
    "text{font:12px monospace;fill:#222}"
    ".name{font-weight:bold}.stage{fill:#fafafa;stroke:#bbb;stroke-dasharray:4 3}.head{fill:#777}"
    ".box{stroke:#555}.way{fill:none;stroke:#555}.thick{stroke-width:2.5;stroke:#22558c}.on{fill:#22558c;font-size:10px;text-anchor:middle}.tag{fill:#fff}"
)


@record
class _Box:
    """What is drawn as a box: its lines of text, its place in a grid of columns, and its look."""

    id: str
    lines: tuple[str, ...]
    fill: str
    tooltip: str
    stage: int

    @property
    def width(self) -> float:
        """In pixels, by the longest line."""
        return max(map(_columns_of, self.lines)) * _CHARACTER + 2 * _PADDING

    @property
    def height(self) -> float:
        """In pixels, by the number of lines."""
        return len(self.lines) * _LINE + _PADDING


def emit_svg(plan: Plan) -> str:
    """The text of an SVG image with a background of its own; nothing in it is loaded from anywhere."""
    boxes, ways = _boxes(plan), arrows(plan)
    columns = _columns(boxes, ways)
    at, passing = _positions(columns, ways)
    sizes = {box.id: (box.width, box.height) for box in boxes}
    right = max((x + sizes[id_][0] for id_, (x, _) in at.items()), default=0) + _MARGIN * 1.5
    lowest = [*(y + sizes[id_][1] for id_, (_, y) in at.items()), *passing.values()]
    bottom = max(lowest, default=0) + _MARGIN * 1.5
    routes = list(zip(ways, _routes(columns, ways, at, passing), strict=True))
    body = [
        *(_stage(stage.id, boxes, at) for stage in plan.stages),
        *(_way(arrow, points) for arrow, points in routes),
        *(_label(arrow.label, points) for arrow, points in routes if arrow.label),
        *(_drawn(box, *at[box.id]) for box in boxes),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right:.0f}" height="{bottom:.0f}" '
        f'viewBox="0 0 {right:.0f} {bottom:.0f}">'
    )
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#444"/></marker></defs>'
    )
    lines = [head, f"<title>{_text(plan.name)}</title>", f"<style>{_STYLE}</style>", marker]
    return "\n".join([*lines, '<rect width="100%" height="100%" fill="#fff"/>', *body, "</svg>"]) + "\n"


# -------------------------------------------------------------------------------------------------------------- layout


def _boxes(plan: Plan) -> list[_Box]:
    last = len(plan.stages)
    found = [_node(place) for place in places(plan)]
    sinks = [_Box(id_, sink_description(sink), _FILL["sink"], "", last) for id_, sink in sink_places(plan)]
    return found + sinks


def _node(place: Place) -> _Box:
    lines, status = description(place.node), place.node.status
    fill = _FILL["global table" if "(global table)" in lines[1] else place.node.kind]
    return _Box(place.id, lines, fill, status.reason if status is not None else "", place.stage)


def _columns(boxes: Sequence[_Box], ways: Sequence[Arrow]) -> list[list[_Box]]:
    """The boxes of every column: stage by stage, and in a stage by the length of the way to them."""
    by_id = {box.id: box for box in boxes}
    rank: dict[str, int] = {box.id: 0 for box in boxes}
    for _ in boxes:
        moved = False
        for way in ways:
            if by_id[way.start].stage == by_id[way.end].stage and rank[way.end] <= rank[way.start]:
                rank[way.end] = rank[way.start] + 1
                moved = True
        if not moved:
            break
    columns: dict[tuple[int, int], list[_Box]] = {}
    for box in boxes:
        columns.setdefault((box.stage, rank[box.id]), []).append(box)
    return [columns[place] for place in sorted(columns)]


def _positions(
    columns: Sequence[Sequence[_Box]], ways: Sequence[Arrow]
) -> tuple[dict[str, tuple[float, float]], dict[tuple[str, int], float]]:
    """The upper left corner of every box, and the heights of the lanes by where they come from and their column.

    A box is as high as what it reads is on average, below the ones above it. A way that passes a column has a lane in
    it, which it shares with all ways from the same box.
    """
    column_of = {box.id: number for number, column in enumerate(columns) for box in column}
    lanes: dict[int, list[str]] = {number: [] for number in range(len(columns))}
    for way in ways:
        for number in range(column_of[way.start] + 1, column_of[way.end]):
            if way.start not in lanes[number]:
                lanes[number].append(way.start)
    at: dict[str, tuple[float, float]] = {}
    passing: dict[tuple[str, int], float] = {}
    middle: dict[str, float] = {}  # of a box, or of the last lane of a way from it
    x, stage = float(_MARGIN), 0
    for number, column in enumerate(columns):
        if column[0].stage != stage:
            x, stage = x + _MARGIN, column[0].stage
        slots: list[tuple[float, str, _Box | None]] = [(middle[start], start, None) for start in lanes[number]]
        slots += [(_wanted(box, ways, middle), box.id, box) for box in column]
        y = float(_MARGIN + _HEAD)
        for wanted, id_, box in sorted(slots, key=lambda slot: slot[0]):
            height = _LANE if box is None else box.height
            y = max(y, wanted - height / 2)
            if box is None:
                passing[id_, number] = y + height / 2
            else:
                at[id_] = (x, y)
            middle[id_] = y + height / 2
            y += height + _GAP_Y
        x += max(box.width for box in column) + _GAP_X
    return at, passing


def _wanted(box: _Box, ways: Sequence[Arrow], middle: Mapping[str, float]) -> float:
    before = [middle[way.start] for way in ways if way.end == box.id and way.start in middle]
    return sum(before) / len(before) if before else 0.0


def _routes(
    columns: Sequence[Sequence[_Box]],
    ways: Sequence[Arrow],
    at: Mapping[str, tuple[float, float]],
    passing: Mapping[tuple[str, int], float],
) -> list[list[tuple[float, float]]]:
    """The points that each way goes through: pairs between which it bends, and beyond which it goes straight."""
    boxes = {box.id: box for column in columns for box in column}
    column_of = {box.id: number for number, column in enumerate(columns) for box in column}
    edges = [
        (min(at[box.id][0] for box in column), max(at[box.id][0] + box.width for box in column)) for column in columns
    ]
    found = []
    for way in ways:
        start, end = boxes[way.start], boxes[way.end]
        points = [(at[start.id][0] + start.width, at[start.id][1] + start.height / 2)]
        points.append((max(edges[column_of[start.id]][1], points[0][0]), points[0][1]))
        for number in range(column_of[way.start] + 1, column_of[way.end]):
            points += [(edge, passing[way.start, number]) for edge in edges[number]]
        found.append([*points, (at[end.id][0], at[end.id][1] + end.height / 2)])
    return found


# ------------------------------------------------------------------------------------------------------------- drawing


def _stage(number: int, boxes: Sequence[_Box], at: Mapping[str, tuple[float, float]]) -> str:
    inside = [(at[box.id], box) for box in boxes if box.stage == number]
    left, top = min(x for (x, _), _ in inside) - 12, float(_MARGIN)
    right = max(x + box.width for (x, _), box in inside) + 12
    bottom = max(y + box.height for (_, y), box in inside) + 12
    return (
        f'<rect class="stage" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}" '
        f'rx="8"/><text class="head" x="{left + 8:.1f}" y="{top + 15:.1f}">stage {number}</text>'
    )


def _way(arrow: Arrow, points: Sequence[tuple[float, float]]) -> str:
    (x, y), *rest = points
    path = f"M{x:.1f},{y:.1f}"
    for number, (x1, y1) in enumerate(rest):
        bend = (x1 - x) / 2
        curve = f" C{x + bend:.1f},{y:.1f} {x1 - bend:.1f},{y1:.1f} {x1:.1f},{y1:.1f}"
        path += curve if number % 2 else f" L{x1:.1f},{y1:.1f}"
        x, y = x1, y1
    look = "way thick" if arrow.label else "way"
    return f'<path class="{look}" d="{path}" marker-end="url(#tip)"/>'


def _label(text: str, points: Sequence[tuple[float, float]]) -> str:
    """What stands on a way, in the middle of its last bend, which it interrupts."""
    (x0, y0), (x1, y1) = points[-2:]
    x, y, half = (x0 + x1) / 2, (y0 + y1) / 2, len(text) * _SMALL / 2 + 2
    return (
        f'<rect class="tag" x="{x - half:.1f}" y="{y - 7:.1f}" width="{2 * half:.1f}" height="14"/>'
        f'<text class="on" x="{x:.1f}" y="{y + 3:.1f}">{text}</text>'
    )


def _drawn(box: _Box, x: float, y: float) -> str:
    tooltip = f"<title>{_text(box.tooltip)}</title>" if box.tooltip else ""
    looks = ("name", *("line" for _ in box.lines[1:]))
    texts = "".join(
        f'<text class="{look}" x="{x + _PADDING:.1f}" y="{y + number * _LINE:.1f}">{_text(line)}</text>'
        for number, (look, line) in enumerate(zip(looks, box.lines, strict=True), start=1)
    )
    return (
        f'<g>{tooltip}<rect class="box" x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'rx="5" fill="{box.fill}"/>{texts}</g>'
    )


def _columns_of(text: str) -> int:
    """How many columns of a monospaced font a text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _text(text: str) -> str:
    """`text` as the content of an element, without what XML cannot hold."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
