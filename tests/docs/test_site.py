"""The documents as a site: it builds, and its links lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs.site import ROOT, broken_links, build


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    site = build(tmp_path)
    pages = {str(page.parent.relative_to(site)) for page in site.rglob("index.html")}
    assert {".", "docs/guide", "docs/operators/suppress", "docs/cli", "docs/diagnostics/VSC301"} <= pages
    assert {f"docs/diagnostics/{page.stem}" for page in (ROOT / "docs/diagnostics").glob("VSC*.md")} <= pages
    assert "<table>" in (site / "docs/operators/suppress/index.html").read_text()


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="a/">a</a> <a href="a/#there">a</a> <a href="b/">b</a> <a href="a/#gone">a</a> <a href="https://x">x</a>'
    )
    (tmp_path / "a/index.html").write_text('<h1 id="there"></h1> <a href="../">up</a> <img src="p.png">')
    assert sorted(broken_links(tmp_path)) == ["a/index.html: p.png", "index.html: a/#gone", "index.html: b/"]
