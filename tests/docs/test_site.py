"""The documents as a site: it builds, and its links lead somewhere."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.docs.site import MOVED, ROOT, broken_links, build

WORDS = (
    "deduplicate",
    "row_number",
    "lag",
    "previous",
    "running total",
    "top N",
    "cumulate",
    "CDC",
    "TTL",
    "timer",
    "lookback",
    "over (partition by",
    "temporal join",
    "interval join",
    "watermark",
)
"""What people search for who come from elsewhere."""


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    site = build(tmp_path)
    pages = {str(page.parent.relative_to(site)) for page in site.rglob("index.html")}
    assert {".", "docs/guide", "docs/operators/suppress", "docs/cli", "docs/diagnostics/VSC301"} <= pages
    assert {f"docs/diagnostics/{page.stem}" for page in (ROOT / "docs/diagnostics").glob("VSC*.md")} <= pages
    assert {*MOVED, *MOVED.values()} <= pages
    assert 'url=../inside/state-store/"' in (site / "docs/state-store/index.html").read_text()
    headings = [
        item["title"].lower()
        for item in json.loads((site / "search.json").read_text(encoding="utf-8"))["items"]
        if item["location"].startswith("docs/coming-from-sql/#")
    ]
    assert [word for word in WORDS if not any(word.lower() in heading for heading in headings)] == []
    assert (site / "docs/operators/pictures/suppress.svg").exists()
    time = (site / "docs/time/index.html").read_text(encoding="utf-8")
    assert 'href="../../site.css"' in time and "picture highlight" in time  # the one block that is not wrapped
    assert "<table>" in (site / "docs/operators/suppress/index.html").read_text()


def test_the_menu_has_parts_of_few_entries_and_every_page() -> None:
    """But the pages of single codes, decisions and examples, which others list."""
    menu = tomllib.loads((ROOT / "docs/zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    parts = {name: list(_pages(inside)) for part in menu for name, inside in part.items()}
    assert {name: len(pages) for name, pages in parts.items() if len(pages) > 25} == {}
    assert len(parts) <= 8
    shown = [page for pages in parts.values() for page in pages]
    assert len(shown) == len(set(shown))
    written = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in written if page.split("/")[1] not in ("decisions", "diagnostics")} <= set(shown)


def _pages(inside: Any) -> Iterator[str]:
    """The pages of a part of the menu, and of the groups in it."""
    if isinstance(inside, str):
        yield inside
        return
    for entry in inside:
        for each in entry.values():
            yield from _pages(each)


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="a/">a</a> <a href="a/#there">a</a> <a href="b/">b</a> <a href="a/#gone">a</a> <a href="https://x">x</a>'
    )
    (tmp_path / "a/index.html").write_text('<h1 id="there"></h1> <a href="../">up</a> <img src="p.png">')
    assert sorted(broken_links(tmp_path)) == ["a/index.html: p.png", "index.html: a/#gone", "index.html: b/"]
