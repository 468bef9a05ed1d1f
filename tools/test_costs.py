"""``python -m tools.test_costs``: writes `tests/costs.txt` from the report of `make rest`: seconds by file.

A file that the report does not have keeps what it has, unless it is gone: the report of one share is enough to bring
its files up to date. The shares (tests/shares.py) need no more than the proportions, so any machine will do.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from tests.shares import COSTS, costs

__all__ = ["main", "measured"]

REPORT = Path("build/rest.xml")


def main(report: Path = REPORT) -> None:
    """Brings the list up to date."""
    found = {path: cost for path, cost in (costs() | measured(report)).items() if Path(path).is_file()}
    rows = sorted(found.items(), key=lambda row: (-row[1], row[0]))
    COSTS.write_text("".join(f"{cost:.0f} {path}\n" for path, cost in rows), encoding="utf-8")


def measured(report: Path) -> dict[str, float]:
    """Seconds by file in a report of pytest (JUnit's XML), at least one each. SystemExit if it is not a whole one."""
    found: defaultdict[str, float] = defaultdict(float)
    try:
        for case in ElementTree.parse(report).iter("testcase"):
            found[f"{case.attrib['classname'].replace('.', '/')}.py"] += float(case.attrib["time"])
    except (OSError, ElementTree.ParseError, KeyError) as error:
        why = f"a test has no {error}" if isinstance(error, KeyError) else error
        raise SystemExit(f"{report} is not the report of a whole run ({why}): run `make rest` to its end") from None
    return {path: max(1.0, seconds) for path, seconds in found.items()}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
