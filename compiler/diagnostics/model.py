"""A diagnostic as a value: what is wrong, where, why, and the one thing to do."""

from __future__ import annotations

from typing import Literal as Choice

from vsc.compiler.source import SourceFile, Span
from vsc.plan.record import record
from vsc.plan.words import cut

__all__ = ["Diagnostic", "Finding", "Fix", "Label", "Related", "TopologyError", "locate"]

Severity = Choice["error", "warning"]


@record
class Label:
    """A second place that helps to explain a finding."""

    span: Span
    message: str


@record
class Fix:
    """An edit that does what the help says: `span` becomes `new`. It stands only where nothing else can be meant.

    `rival` is another text that could be meant, if the rest of the topology allows it; the edit is then not sure.
    """

    span: Span
    new: str
    rival: str | None = None


@record
class Finding:
    """What a pass reports.

    It has a code, a span, a sentence with the user's names, labels for the causes, one action as help, and, if it is
    sure what was meant, the edit that editors offer. `node`: the node that it is about, for passes that ask.
    """

    code: str
    span: Span
    message: str
    labels: tuple[Label, ...] = ()
    help: str | None = None
    fix: Fix | None = None
    node: str | None = None


@record
class Related:
    """A label with its file, and its lines and columns in it (1-based; the end is exclusive)."""

    message: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int


@record
class Diagnostic:
    """A finding with its lines and columns, as users and scripts see it (1-based; the end is exclusive)."""

    code: str
    severity: Severity
    message: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    related: tuple[Related, ...]
    help: str | None


class TopologyError(Exception):
    """A topology was refused. `diagnostics` has all findings, including warnings, in the order of their places.

    `source` is the topology that they are about, if it is known.
    """

    def __init__(self, diagnostics: tuple[Diagnostic, ...], source: SourceFile | None = None) -> None:
        self.diagnostics = diagnostics
        self.source = source
        errors = [d for d in diagnostics if d.severity == "error"]
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        super().__init__(f"{first.path}:{first.line}:{first.column}: {first.code}: {first.message}{more}")

    def __reduce__(self) -> tuple[type[TopologyError], tuple[tuple[Diagnostic, ...], SourceFile | None]]:
        """Pickles the diagnostics, so that the error can be passed between processes."""
        return type(self), (self.diagnostics, self.source)

    def _render_traceback_(self) -> list[str]:
        """The text that IPython shows instead of a traceback: the same as ``vsc check`` shows."""
        from vsc.compiler.diagnostics.render import render_text

        sources = {} if self.source is None else self.source.files()
        return render_text(self.diagnostics, sources, color=True).splitlines()


def locate(finding: Finding, severity: Severity, source: SourceFile) -> Diagnostic:
    """The diagnostic that shows `finding` in `source`, long names and values cut."""
    start, end = source.position(finding.span.start), source.position(finding.span.end)
    related = []
    for label in finding.labels:
        at, to = source.position(label.span.start), source.position(label.span.end)
        path = source.path_of(label.span.start)
        related.append(Related(cut(label.message), path, at.line, at.column, to.line, to.column))
    return Diagnostic(
        finding.code, severity, cut(finding.message), source.path_of(finding.span.start),
        start.line, start.column, end.line, end.column, tuple(related), finding.help and cut(finding.help),
    )  # fmt: skip
