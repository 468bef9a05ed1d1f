"""Builds the documents as a site: ``python -m tools.docs.site FOLDER`` writes it to FOLDER/site.

The pages stand beside each other as in the repository, so their links to each other are those of the Markdown; only a
README is the index of its folder. What is not a page (a topology, a script) has no link on the site. A link or an
anchor that leads nowhere is an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

__all__ = ["MOVED", "broken_links", "build", "lay_out"]

ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("*.md", "docs/**/*.md", "examples/*/README.md", "bench/*.md")
MOVED = {
    "docs/state-protocol": "docs/inside/state-protocol",
    "docs/state-store": "docs/inside/state-store",
}
"""Pages that had another address, which leads to the new one."""
_PICTURE = re.compile(r"^<!-- (?:picture|timeline) -->\n\n```\n", re.MULTILINE)
"""In front of a picture in characters, whose lines must not be wrapped."""
_LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^):#]+)(#[^)]*)?\)")


def build(folder: Path) -> Path:
    """Builds the site in `folder`, and returns where it is. ValueError for links that lead nowhere."""
    lay_out(folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", "zensical.toml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"zensical failed:\n{done.stdout}\n{done.stderr}")
    site = folder / "site"
    for old, new in MOVED.items():
        _redirect(site / old / "index.html", os.path.relpath(new, old) + "/")
    broken = list(broken_links(site))
    if broken:
        raise ValueError("links that lead nowhere:\n" + "\n".join(broken))
    return site


def _redirect(page: Path, to: str) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    refresh = f'<meta http-equiv="refresh" content="0; url={to}">'
    page.write_text(f'<!doctype html><title>Moved</title>{refresh}<a href="{to}">Moved</a>\n', encoding="utf-8")


def lay_out(folder: Path) -> None:
    """Writes the pages and the configuration."""
    found = [path for pattern in _SOURCES for path in sorted(ROOT.glob(pattern))]
    texts = {_place(path): (path, path.read_text(encoding="utf-8")) for path in found}
    texts[Path("docs/diagnostics/index.md")] = (ROOT / "docs/diagnostics/index.md", _index("diagnostics", "Codes"))
    texts[Path("docs/decisions/index.md")] = (ROOT / "docs/decisions/index.md", _index("decisions", "Decisions"))
    for place, (path, text) in texts.items():
        target = folder / "pages" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        written = _LINK.sub(partial(_on_site, page=path, pages=set(texts)), text)
        target.write_text(_PICTURE.sub("``` { .text .picture }\n", written), encoding="utf-8")
    for picture in ROOT.glob("docs/**/*.svg"):
        target = folder / "pages" / picture.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    shutil.copy(ROOT / "docs" / "zensical.toml", folder)
    shutil.copy(ROOT / "docs" / "site.css", folder / "pages")


def _place(path: Path) -> Path:
    relative = path.relative_to(ROOT)
    return relative.with_name("index.md") if relative.name == "README.md" else relative


def _on_site(link: re.Match[str], page: Path, pages: set[Path]) -> str:
    """The link as it is on the site; its text alone where its target is not there."""
    target = Path(os.path.normpath(page.parent / link[2]))
    place = _place(target) if target.is_relative_to(ROOT) else target
    if place not in pages:
        place = place / "index.md"
    if place not in pages:
        return link[1]
    return f"[{link[1]}]({os.path.relpath(place, _place(page).parent)}{link[3] or ''})"


def _index(folder: str, title: str) -> str:
    lines = [f"# {title}", ""]
    for path in sorted((ROOT / "docs" / folder).glob("*.md")):
        heading = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"* [{heading}]({path.name})")
    return "\n".join(lines) + "\n"


class _Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if (anchor := given.get("id")) is not None:
            self.anchors.add(anchor)
        name = {"a": "href", "link": "href", "img": "src", "script": "src"}.get(tag)
        if name is not None and (link := given.get(name)):
            self.links.append(link)


def broken_links(site: Path) -> Iterator[str]:
    """A line for each link within the site that leads nowhere."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    for path, page in pages.items():
        for link in page.links:
            url, anchor = urldefrag(link)
            if ":" in url or url.startswith("/"):
                continue
            target = path if not url else (path.parent / unquote(url)).resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (anchor and target in pages and unquote(anchor) not in pages[target].anchors):
                yield f"{path.relative_to(site)}: {link}"


if __name__ == "__main__":
    try:
        print(build(Path(sys.argv[1]).resolve()))
    except ValueError as error:
        raise SystemExit(str(error)) from None
