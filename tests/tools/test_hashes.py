"""The hashes are those of the pinned versions: each has some, and there are no others."""

from __future__ import annotations

import re

from tools.hashes import FOLDER, ROOT, pinned, sparks

_ENTRY = re.compile(r"^(\S+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def _hashed(name: str) -> set[str]:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert _ENTRY.sub("", text) == ""
    return {f"{_plain(found[1])}=={found[2]}" for found in _ENTRY.finditer(text)}


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_each_pinned_version_has_its_hashes() -> None:
    names = (one.split("==") for one in pinned())
    assert _hashed("dependencies.txt") == {f"{_plain(name)}=={version}" for name, version in names}
    for spark in sparks():
        (py4j,) = _hashed(f"pyspark-{spark}.txt") - {f"pyspark=={spark}"}
        assert py4j.startswith("py4j==")
    assert {path.name for path in FOLDER.iterdir()} == {
        "dependencies.txt", "release.txt", *(f"pyspark-{one}.txt" for one in sparks()),
    }  # fmt: skip


def test_set_up_checks_them() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert text.count("--require-hashes -r hashes/dependencies.txt\n") == 1
    assert text.count("--require-hashes -r hashes/pyspark-$(2).txt\n") == 1
    made = ["$(VENV),$(PYSPARK)", "$(NEWEST),$(PYSPARK_NEWEST)", "$(OLDEST),$(PYSPARK_OLDEST)"]
    assert re.findall(r"\$\(call set_up,(.*)\)", text) == made
