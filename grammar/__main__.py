"""``python -m vsc.grammar``: rebuilds ``tables.json`` from ``vsc.lark``."""

from __future__ import annotations

from pathlib import Path

from vsc.grammar import read
from vsc.grammar.build import build_tables

if __name__ == "__main__":
    Path(__file__).with_name("tables.json").write_text(build_tables(read()), encoding="utf-8")
