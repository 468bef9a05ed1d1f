"""``python -m vsc.grammar``: rebuilds ``tables.json`` and ``forms.json`` from ``vsc.lark``."""

from __future__ import annotations

from pathlib import Path

from vsc.grammar import read
from vsc.grammar.build import build_tables
from vsc.grammar.build_forms import build_forms

if __name__ == "__main__":
    for name, text in (("tables.json", build_tables(read())), ("forms.json", build_forms(read()))):
        Path(__file__).with_name(name).write_text(text, encoding="utf-8")
