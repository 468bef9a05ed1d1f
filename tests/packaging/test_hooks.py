"""``.pre-commit-hooks.yaml``: what pre-commit would run in somebody's repository."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

HOOKS = {
    hook["id"]: hook for hook in yaml.safe_load((Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text())
}
GOOD = "stream a (k string) from memory () key k;\nsink a to noop ();\n"


def test_there_are_these_hooks() -> None:
    assert set(HOOKS) == {"vsc-check", "vsc-fmt"}
    for hook in HOOKS.values():
        assert hook["language"] == "python"  # pre-commit installs this repository, with the base dependencies alone
        assert [path for path in ("a.vdsl", "b/c.vdsl", "a.vdsl.md", "vdsl") if re.search(hook["files"], path)] == [
            "a.vdsl", "b/c.vdsl",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("hook", "text", "status", "after"),
    [
        ("vsc-check", GOOD, 0, GOOD),
        ("vsc-check", GOOD.replace("string", "strin"), 1, GOOD.replace("string", "strin")),
        ("vsc-fmt", GOOD, 0, GOOD),
        ("vsc-fmt", GOOD.replace("()", "( )"), 0, GOOD),  # a hook that changes a file fails, says pre-commit
        ("vsc-fmt", GOOD.replace("(k", "k"), 2, GOOD.replace("(k", "k")),
    ],
)
def test_an_entry_runs(hook: str, text: str, status: int, after: str, python: str, tmp_path: Path) -> None:
    for name in ("a.vdsl", "b.vdsl"):
        (tmp_path / name).write_text(text)
    command, *arguments = shlex.split(HOOKS[hook]["entry"])
    assert command == "vsc"
    done = subprocess.run([python, "-m", "vsc", *arguments, "a.vdsl", "b.vdsl"], cwd=tmp_path, capture_output=True)
    assert done.returncode == status, done.stderr
    assert [(tmp_path / name).read_text() for name in ("a.vdsl", "b.vdsl")] == [after, after]
