"""``vsc check`` does little beside the import of its two libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.conftest import Vsc

LIMIT = 2.0
COUNTED = """
import runpy, sys
calls = 0
def called(*event):
    global calls
    calls += 1
sys.setprofile(called)
try:
    {code}
except SystemExit as end:
    assert not end.code
finally:
    sys.setprofile(None)
print(calls)
"""
CHECK = "sys.argv[0] = 'vsc'; runpy.run_module('vsc', run_name='__main__')"


@pytest.mark.slow
def test_check_does_little_beside_the_import_of_its_libraries(ask: Vsc, root: Path) -> None:
    """Calls of functions, not time: on a busy machine, no two runs take the same."""
    examples = [str(root / f"examples/{name}/topology.vdsl") for name in ("flights", "payments", "sensors")]
    base = ask("-c", COUNTED.format(code="import lark, networkx"))
    ours = ask("-c", COUNTED.format(code=CHECK), "check", *examples)
    assert (base.returncode, ours.returncode, ours.stderr) == (0, 0, "3 files: no findings\n"), base.stderr
    assert int(ours.stdout) <= LIMIT * int(base.stdout)
