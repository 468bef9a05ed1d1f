"""The topologies in the documents: ``python -m tools.docs.blocks`` formats them, as ``vsc fmt`` does files.

A block that cannot be read is left alone: pages about syntax errors show them.
"""

from __future__ import annotations

import re
from pathlib import Path

from vsc.compiler.diagnostics.model import TopologyError
from vsc.compiler.format import format_topology

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted({ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")})
_BLOCK = re.compile(r"(?<=^```vdsl\n).*?(?=^```)", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[str]:
    """The topologies in a page."""
    return _BLOCK.findall(page.read_text())


def formatted(block: str) -> str:
    """The block in the style of ``vsc fmt``."""
    try:
        return format_topology(block)
    except TopologyError:
        return block


def main() -> None:
    """Formats the blocks of all pages."""
    for page in PAGES:
        text = page.read_text()
        changed = _BLOCK.sub(lambda match: formatted(match.group()), text)
        if changed != text:
            page.write_text(changed)
            print(f"reformatted: {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
