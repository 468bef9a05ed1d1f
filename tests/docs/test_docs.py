"""What the documents say in code is true: topologies compile, links lead somewhere."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tools.docs import blocks, cli, functions, operators, pictures, timeline
from vsc.cli import main
from vsc.compiler import check_topology
from vsc.testing import TopologyTestDriver

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "bench/*.md", "tests/**/*.md")
    for page in ROOT.glob(pattern)
)
TOPOLOGIES = [
    (f"{page.relative_to(ROOT)}, block {number}", block)
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
    if page.name != "coming-from-sql.md"  # one topology in parts: test_coming_from_sql
    for number, block in enumerate(re.findall(r"^```vdsl\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL))
]


def test_a_topology_in_a_document_compiles() -> None:
    found = {place: check_topology(text, path="document.vdsl", variables={}) for place, text in TOPOLOGIES}
    assert len(found) >= 10
    assert {place: findings for place, findings in found.items() if findings} == {}


def test_the_options_of_a_connector_are_right() -> None:
    """A page of a connector shows single statements."""
    pages = {page: blocks.blocks(page) for page in (ROOT / "docs/connectors").glob("*.md")}
    assert [page.name for page, shown in pages.items() if not shown] == []
    found = [
        (page.name, each)
        for page, shown in pages.items()
        for block in shown
        for each in check_topology(block, path="document.vdsl")
    ]
    assert [(page, each) for page, each in found if each.code[3] in "05" and each.code != "VSC013"] == []


def test_the_topologies_in_a_document_are_formatted() -> None:
    """`python -m tools.docs.blocks` formats them."""
    shown = [(str(page.relative_to(ROOT)), block) for page in blocks.PAGES for block in blocks.blocks(page)]
    assert [(page, block) for page, block in shown if block != blocks.formatted(block)] == []


def test_the_examples_are_formatted(capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(ROOT / name) for name in ("examples", "tests/golden", "tests/dirty_data")]
    assert main(["fmt", "--check", *folders]) == 0, capsys.readouterr().err


def test_the_python_in_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(blocks[0], "README.md", "exec"), {})  # the second one is in tests/runtime/spark/query/test_start.py


def test_the_python_about_the_test_driver_runs() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/testing.md").read_text(), re.MULTILINE | re.DOTALL)
    *lines, last = block.rstrip().splitlines()
    with TopologyTestDriver(ROOT / "examples/payments/topology.vdsl") as driver:
        exec("\n".join(lines), {"driver": driver})
        assert eval(last, {"driver": driver}).value["rate"] == 1.1
        assert [record.value for record in driver.read("priced")] != []


def test_the_scenarios_in_the_documents_hold(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples/payments/topology.vdsl", tmp_path)
    shutil.copytree(ROOT / "examples/payments/data", tmp_path / "data")
    blocks = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs/testing.md").read_text(), re.MULTILINE | re.DOTALL)
    paths = [tmp_path / f"{number}.scenario.yaml" for number in range(len(blocks))]
    for path, block in zip(paths, blocks, strict=True):
        path.write_text(block)
    assert [main(["test", str(path)]) for path in paths] == [0, 0, 0, 1]
    assert main(["test", str(tmp_path), "--accept"]) == 0


def test_a_link_leads_to_a_file_and_a_heading_in_it() -> None:
    links = [
        (str(page.relative_to(ROOT)), page.parent / path if path else page, anchor)
        for page in PAGES
        for path, anchor in _LINK.findall(page.read_text())
    ]
    assert [(page, path) for page, path, _ in links if not path.exists()] == []
    assert [(page, path.name, anchor) for page, path, anchor in links if anchor and anchor not in _anchors(path)] == []


@pytest.mark.parametrize(
    "generator", [functions, operators, cli, timeline, pictures], ids=lambda generator: generator.__name__
)
def test_generated_pages_are_current(generator: ModuleType) -> None:
    made = generator.pages()
    old = [path.name for path, text in made.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    assert old == [], f"run `python -m {generator.__name__}`"


def test_the_page_of_each_operator_shows_its_picture() -> None:
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs/operators").glob("*.md")}
    shown = {name for name, text in pages.items() if f"](pictures/{name}.svg)" in text}
    assert pages.keys() - shown == {"index"}
    assert {path.stem for path in pictures.FOLDER.glob("*.svg")} == shown == {path.stem for path in pictures.pages()}


def test_each_decision_has_a_number_of_its_own() -> None:
    pages = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    assert [page.read_text()[2:7] for page in pages] == [f"{page.name[:4]} " for page in pages]


_LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")


@cache
def _anchors(page: Path) -> set[str]:
    """The anchors that a page's headings get: lower case, without punctuation, with hyphens for blanks."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
