"""The compiler's findings as an editor shows them."""

from __future__ import annotations

from lsprotocol import types

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.diagnostics.model import Finding
from vsc.lsp.document import Document

__all__ = ["diagnostic", "diagnostics"]

_SOURCE = "vsc"
_SEVERITIES = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}


def diagnostics(document: Document) -> list[types.Diagnostic]:
    """All findings, in the order of their places."""
    return [diagnostic(document, finding) for finding in document.known.findings]


def diagnostic(document: Document, finding: Finding) -> types.Diagnostic:
    """A finding: its help goes with the message, its labels are related places.

    One in an included file stands at the `include`, and its place is a related one.
    """
    related = [
        types.DiagnosticRelatedInformation(document.location(label.span), label.message) for label in finding.labels
    ]
    if not document.is_own(finding.span):
        related.insert(0, types.DiagnosticRelatedInformation(document.location(finding.span), "in the included file"))
    message = finding.message if finding.help is None else f"{finding.message}\nhelp: {finding.help}"
    return types.Diagnostic(
        document.positions.range(document.known.source.own(finding.span)),
        message,
        severity=_SEVERITIES[CODES[finding.code].severity],
        code=finding.code,
        source=_SOURCE,
        related_information=related or None,
    )
