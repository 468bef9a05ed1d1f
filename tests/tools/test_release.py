"""What stops a release, and that its workflow runs what was tested: pinned actions, few rights, `make release`."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.hashes import EXTRAS, RELEASE, ROOT
from tools.release import ReleaseError, bill_of, check_tag, sums

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
FILES = (*WORKFLOWS, ROOT / "action.yml", ROOT / "vsc/template/dot-github/workflows/vsc.yml")
OWN = "vsc-project/vsc@"


def _release() -> dict[Any, Any]:
    found: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    return found


def _commands(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_actions_are_pinned_by_the_hash_of_a_commit(path: Path) -> None:
    used = re.findall(r"uses: *(\S+)(.*)", path.read_text())
    assert used
    for name, comment in used:
        if not name.startswith(("./", OWN)):
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", name), name
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), name
    assert len(dict(used)) == len({name.partition("@")[0] for name, _ in used}), "one version of each action"


def test_only_the_job_that_publishes_has_rights_and_it_runs_nothing_of_the_checkout() -> None:
    workflow = _release()
    jobs = workflow["jobs"]
    assert workflow["permissions"] == {}
    assert {name: job["permissions"] for name, job in jobs.items() if name != "publish"} == {
        "support": {"contents": "read"}, "build": {"contents": "read"},
    }  # fmt: skip
    publish = jobs["publish"]
    assert (publish["permissions"]["id-token"], publish["environment"], publish["needs"]) == ("write", "pypi", "build")
    assert "sparse-checkout" in publish["steps"][0]["with"]
    assert not re.search(r"make|tools|-m vsc|pip install \.", _commands(publish))


def test_a_tag_is_tested_built_attested_and_published_in_this_order() -> None:
    workflow = _release()
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML 1.1 reads `on` as true
    assert workflow["jobs"]["build"]["needs"] == "support"
    assert 'make release TAG="$GITHUB_REF_NAME"' in _commands(workflow["jobs"]["build"])
    done = _commands(workflow["jobs"]["publish"])
    steps = ["sha256sum --check", "--require-hashes", "pypi_attestations sign", "twine upload", "gh release create"]
    assert sorted(steps, key=done.index) == steps
    assert "--attestations" in done


def test_its_tools_are_pinned_with_hashes() -> None:
    text = (ROOT / "hashes/release.txt").read_text()
    entry = re.compile(r"^([\w.-]+)==\S+ \\\n(?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", re.MULTILINE)
    assert entry.sub("", text) == ""
    assert set(RELEASE) <= set(entry.findall(text))
    assert "--require-hashes -r hashes/release.txt" in (ROOT / "Makefile").read_text()


def test_the_bill_of_materials_has_all_extras_for_users() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert f'"versioned-streams[{",".join(EXTRAS)}]"' in text


CHANGES = "# Changes\n\n## Unreleased\n\n## 1.0.0rc1 (2026-12-01)\n"


@pytest.mark.parametrize(
    ("tag", "changes", "kept", "told"),
    [
        ("v1.0.0", CHANGES, True, "the tag is v1.0.0, but vsc/__init__.py says 1.0.0rc1: the tag has to be v1.0.0rc1"),
        ("v1.0.0rc1", "## Unreleased\n", True, "CHANGELOG.md has no part `## 1.0.0rc1`"),
        ("v1.0.0rc1", "## 1.0.0rc12\n", True, "CHANGELOG.md has no part `## 1.0.0rc1`"),
        ("v1.0.0rc1", CHANGES, False,
         "no checkpoint of 1.0.0rc1 is kept: run python -m tools.kept_checkpoint with pyspark 4.0.2"),
        ("v1.0.0rc1", CHANGES, True, None),
    ],
)  # fmt: skip
def test_a_release_needs_its_tag_its_changes_and_its_checkpoint(
    tag: str, changes: str, kept: bool, told: str | None, tmp_path: Path
) -> None:
    if kept:
        (tmp_path / "release-1.0.0rc1.tar.gz").touch()
    if told is None:
        check_tag(tag, "1.0.0rc1", changes, tmp_path)
        return
    with pytest.raises(ReleaseError) as raised:
        check_tag(tag, "1.0.0rc1", changes, tmp_path)
    assert str(raised.value) == told


def test_sums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"b")
    (tmp_path / "a.tar.gz").write_bytes(b"a")
    a, b = (hashlib.sha256(one).hexdigest() for one in (b"a", b"b"))
    assert sums(tmp_path) == f"{a}  a.tar.gz\n{b}  b.whl\n"


def test_names_in_a_bill_are_those_of_pip() -> None:
    assert bill_of({"components": [{"name": "PyYAML", "version": "6.0.3"}, {"name": "a_b", "version": "1"}]}) == {
        "pyyaml": "6.0.3", "a-b": "1",
    }  # fmt: skip
