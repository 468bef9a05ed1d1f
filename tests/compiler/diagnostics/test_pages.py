"""Every page of a diagnostic code: its headings, and examples that do and do not have the finding."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vsc.compiler import check_topology
from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.parser.mistake_rows import rows
from vsc.compiler.parser.mistakes import MISTAKES

FOLDER = Path(__file__).parents[3] / "docs" / "diagnostics"
PAGES = sorted(FOLDER.glob("VSC[0-5]*.md"))
HEADINGS = ["## What it means", "## Why it is so", "## Wrong", "## Right"]


def _examples(page: Path, folder: Path) -> tuple[set[str], set[str]]:
    """The codes of both examples. A block that begins with ``-- NAME.vdsl`` is a file that the next one may include."""
    found = []
    for block in re.findall(r"^```vdsl\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        name = re.match(r"-- (\w+\.vdsl)\n", block)
        if name is not None:
            (folder / name[1]).write_text(block, encoding="utf-8")
        else:
            found.append({d.code for d in check_topology(block, path=str(folder / "page.vdsl"))})
    wrong, right = found
    return wrong, right


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_its_headings_and_the_title_of_its_code(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0] == f"# {page.stem}: {CODES[page.stem].title}"
    assert [line for line in lines if line.startswith("## ")] == HEADINGS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_wrong_example_has_the_finding_and_the_right_one_has_none(page: Path, tmp_path: Path) -> None:
    wrong, right = _examples(page, tmp_path)
    assert wrong == {page.stem}
    assert right == set()


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.md") if path.stem != "README") == [
        f"{c}.md" for c in sorted(CODES)
    ]


@pytest.mark.parametrize("page", sorted(FOLDER.glob("VSC9*.md")), ids=lambda page: page.stem)
def test_a_page_of_the_run_time_explains_its_code(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert lines[0] == f"# {page.stem}: {CODES[page.stem].title}"
    assert [line for line in lines if line.startswith("## ")] == HEADINGS[:2]


def test_every_code_that_the_package_uses_is_registered_and_every_registered_one_is_used() -> None:
    root = FOLDER.parents[1]
    files = [
        path for folder in ("compiler", "runtime", "vsc/cli", "vsc/plan") for path in (root / folder).rglob("*.py")
    ]
    used = {
        code
        for path in files
        if path.name != "codes.py"
        for code in re.findall(r'"(VSC\d{3})"', path.read_text(encoding="utf-8"))
    } | {row.code for family in MISTAKES if isinstance(family, str) for row in rows(family)}
    assert used == set(CODES)
