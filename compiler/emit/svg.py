"""Renders a drawing as SVG, without Graphviz: rows from top to bottom, laid out by `rows` and `places`.

Bands with a title have a frame. The image loads nothing from elsewhere. It is not meant for topologies of hundreds of
nodes, where arrows may cross.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from vsc.compiler.emit.drawing import FILLS, NOTES, Arrow, Box, Drawing, Look, narrow
from vsc.compiler.emit.places import middles
from vsc.compiler.emit.rows import LINE, MARGIN, PADDING, Rows, Slot, height, in_rows, width
from vsc.plan.record import record

__all__ = ["svg"]

_BEND, _HEAD, _PORT, _NOTE = 46, 22, 14, 20
_STYLE = (
    "text{font:12px monospace;fill:#222}.name{font-weight:bold}.head,.note{fill:#777}"
    ".band{fill:#fafafa;stroke:#bbb;stroke-dasharray:4 3}.box{stroke:#555}.way{fill:none;stroke:#555}"
    ".repartition{stroke-width:2.5;stroke:#22558c}.broadcast{stroke-width:2.5;stroke-dasharray:2 3;stroke:#22558c}"
    ".lookup{stroke-dasharray:6 4}"
)
_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
    'markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#444"/></marker></defs>'
)
_Point = tuple[float, float]


@record
class _Sheet:
    """The layout: the centre of each slot, and the band, upper edge and lower edge of each row."""

    rows: Rows
    middle: Mapping[Slot, float]
    edges: tuple[tuple[int, float, float], ...]

    @property
    def right(self) -> float:
        """The right edge of the rightmost slot."""
        return max((self.middle[slot] + self.rows.widths[slot] / 2 for slot in self.middle), default=0.0)


def svg(drawing: Drawing) -> str:
    """The text of an SVG image with its own background."""
    drawing = narrow(drawing)
    boxes = {box.id: box for box in drawing.boxes}
    sheet = _sheet(drawing, boxes)
    looks = [look for look in NOTES if any(arrow.look == look for arrow in drawing.arrows)]
    right = max(sheet.right + MARGIN, MARGIN + 300.0 if looks else 0.0)
    bottom = sheet.edges[-1][2] + MARGIN
    body = [
        *_frames(drawing.bands, sheet, right),
        *(_way(arrow, points) for arrow, points in zip(drawing.arrows, _routes(sheet, boxes), strict=True)),
        *(
            _drawn(boxes[slot], sheet.middle[slot] - sheet.rows.widths[slot] / 2, top)
            for (_, top, _), row in zip(sheet.edges, sheet.rows.rows, strict=True)
            for slot in row
            if slot in boxes
        ),
        *(_note(look, bottom + number * _NOTE) for number, look in enumerate(looks)),
    ]
    bottom += len(looks) * _NOTE
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{right:.0f}" height="{bottom:.0f}" '
        f'viewBox="0 0 {right:.0f} {bottom:.0f}">'
    )
    lines = [head, f"<title>{_text(drawing.name)}</title>", f"<style>{_STYLE}</style>", _TIP]
    return "\n".join([*lines, '<rect width="100%" height="100%" fill="#fff"/>', *body, "</svg>"]) + "\n"


def _sheet(drawing: Drawing, boxes: Mapping[str, Box]) -> _Sheet:
    rows = in_rows(drawing)
    centers = middles(rows)
    shift = MARGIN - min((centers[slot] - rows.widths[slot] / 2 for slot in centers), default=0.0)
    edges: list[tuple[int, float, float]] = []
    bottom = float(MARGIN - _BEND)
    for band, row in zip(rows.bands, rows.rows, strict=True):
        begins = not edges or edges[-1][0] != band
        top = bottom + _BEND + (_HEAD if begins and drawing.bands[band] else 0)
        bottom = top + max(height(boxes[slot]) for slot in row if slot in boxes)
        edges.append((band, top, bottom))
    return _Sheet(rows, {slot: x + shift for slot, x in centers.items()}, tuple(edges))


# ---------------------------------------------------------------------------------------------------------------- ways


def _routes(sheet: _Sheet, boxes: Mapping[str, Box]) -> Iterator[list[_Point]]:
    """The points of each arrow: its start, then pairs. It bends inside a pair and runs straight between pairs."""
    row_of = {slot: number for number, row in enumerate(sheet.rows.rows) for slot in row}
    leaving, entering = _ports(sheet)
    for way in sheet.rows.ways:
        points: list[_Point] = []
        for before, after in pairwise(way):
            _, top, bottom = sheet.edges[row_of[before]]
            x = leaving[before, after]
            if before in boxes:
                points.append((x, top + height(boxes[before])))
            points += [(x, bottom), (entering[before, after], sheet.edges[row_of[after]][1])]
        yield points


def _ports(sheet: _Sheet) -> tuple[dict[tuple[Slot, Slot], float], dict[tuple[Slot, Slot], float]]:
    """The x positions at which arrows leave and enter slots: side by side, in the order of their other ends."""
    after: dict[Slot, list[Slot]] = {}
    before: dict[Slot, list[Slot]] = {}
    for start, end in dict.fromkeys(pair for way in sheet.rows.ways for pair in pairwise(way)):
        after.setdefault(start, []).append(end)
        before.setdefault(end, []).append(start)
    leaving = {(slot, end): x for slot, ends in after.items() for end, x in _side_by_side(sheet, slot, ends)}
    entering = {(start, slot): x for slot, starts in before.items() for start, x in _side_by_side(sheet, slot, starts)}
    return leaving, entering


def _side_by_side(sheet: _Sheet, slot: Slot, others: list[Slot]) -> Iterator[tuple[Slot, float]]:
    room = max(sheet.rows.widths[slot] - PADDING, 0.0)  # 0 in a lane
    step, first = min(_PORT, room / len(others)), (len(others) - 1) / 2
    for number, other in enumerate(sorted(others, key=lambda other: sheet.middle[other])):
        yield other, sheet.middle[slot] + (number - first) * step


# ------------------------------------------------------------------------------------------------------------- drawing


def _frames(titles: Sequence[str], sheet: _Sheet, right: float) -> Iterator[str]:
    for number, title in enumerate(titles):
        edges = [(top, bottom) for band, top, bottom in sheet.edges if band == number]
        if not title or not edges:
            continue
        top, bottom = edges[0][0] - _HEAD, edges[-1][1] + PADDING
        yield (
            f'<rect class="band" x="{MARGIN / 2:.1f}" y="{top:.1f}" width="{right - MARGIN:.1f}" '
            f'height="{bottom - top:.1f}" rx="8"/>'
            f'<text class="head" x="{MARGIN / 2 + 8:.1f}" y="{top + 15:.1f}">{_text(title)}</text>'
        )


def _way(arrow: Arrow, points: Sequence[_Point]) -> str:
    path = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        middle = (y0 + y1) / 2
        straight = x0 == x1
        path += (
            f" L{x1:.1f},{y1:.1f}" if straight else f" C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
        )
    return f'<path class="way {_style(arrow.look)}" d="{path}" marker-end="url(#tip)"/>'


def _style(look: Look) -> str:
    return "lookup" if look == "lost" else look


def _note(look: Look, y: float) -> str:
    return (
        f'<path class="way {_style(look)}" d="M{MARGIN},{y:.1f} L{MARGIN + 40},{y:.1f}" marker-end="url(#tip)"/>'
        f'<text class="note" x="{MARGIN + 50}" y="{y + 4:.1f}">{NOTES[look]}</text>'
    )


def _drawn(box: Box, x: float, y: float) -> str:
    tooltip = f"<title>{_text(box.tooltip)}</title>" if box.tooltip else ""
    looks = ("name", *("line" for _ in box.lines[1:]))
    texts = "".join(
        f'<text class="{look}" x="{x + PADDING:.1f}" y="{y + number * LINE:.1f}">{_text(line)}</text>'
        for number, (look, line) in enumerate(zip(looks, box.lines, strict=True), start=1)
    )
    fill = FILLS[box.kind]
    return (
        f'<g>{tooltip}<rect class="box" x="{x:.1f}" y="{y:.1f}" width="{width(box):.1f}" height="{height(box):.1f}" '
        f'rx="5" fill="{fill}"/>{texts}</g>'
    )


def _text(text: str) -> str:
    """`text` as the content of an element, without characters that XML does not allow."""
    kept = (c if c.isprintable() or c == "\N{NO-BREAK SPACE}" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return escape("".join(kept))
