"""Makes all that a release publishes, and checks it: ``python -m tools.release v1.2.3``, as `make release` calls it.

``build/release`` then holds the wheel, the source archive, a bill of materials (CycloneDX) of the wheel with all its
extras, and the SHA-256 of each file. Nothing is published: `.github/workflows/release.yml` does that. It stops at the
first thing that is wrong. It runs with the packages of ``hashes/release.txt``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

from tools.hashes import EXTRAS, FOLDER, ROOT, sparks
from tools.wheel import faults

__all__ = ["OUT", "ReleaseError", "bill_of", "check_tag", "main", "sums"]

OUT = ROOT / "build/release"
KEPT = ROOT / "tests/runtime/spark/checkpoints"
_NAME = "versioned-streams"


class ReleaseError(Exception):
    """Something that has to be put right before there is a release."""


def check_tag(tag: str, version: str, changes: str, kept: Path) -> None:
    """Raises ReleaseError unless `tag` is that of `version`, the CHANGELOG has it, and a checkpoint of it is kept."""
    if tag != f"v{version}":
        raise ReleaseError(f"the tag is {tag}, but vsc/__init__.py says {version}: the tag has to be v{version}")
    if not re.search(rf"^## \[?{re.escape(version)}(?![\w.])", changes, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md has no part `## {version}`")
    if not (kept / f"release-{version}.tar.gz").exists():
        oldest = min(sparks())
        raise ReleaseError(
            f"no checkpoint of {version} is kept: run python -m tools.kept_checkpoint with pyspark {oldest}"
        )


def bill_of(document: dict[str, object]) -> dict[str, str]:
    """The versions by name in a bill of materials."""
    components = document["components"]
    assert isinstance(components, list)
    return {one["name"].lower().replace("_", "-"): one["version"] for one in components}


def sums(folder: Path) -> str:
    """The SHA-256 of each file in `folder`, as ``sha256sum --check`` reads them."""
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())
    )


def main(arguments: list[str]) -> int:
    """Makes the release of the tag that is the one argument."""
    from vsc import __version__ as version

    if len(arguments) != 1:
        print("usage: python -m tools.release TAG", file=sys.stderr)
        return 2
    (tag,) = arguments
    try:
        check_tag(tag, version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), KEPT)
        print(f"{tag}: the tag, the version, the CHANGELOG and the kept checkpoint agree")
        shutil.rmtree(OUT, ignore_errors=True)
        wheel = _build()
        _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted(OUT.iterdir())))
        _bill(_installed(wheel), OUT / f"{_NAME}.cdx.json", version)
        (OUT / "SHA256SUMS").write_text(sums(OUT), encoding="utf-8")
    except (ReleaseError, subprocess.CalledProcessError) as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    print((OUT / "SHA256SUMS").read_text(encoding="utf-8"), end="")
    return 0


def _build() -> Path:
    """Builds the archives; the wheel twice, as it has to come out the same. Returns the wheel."""
    moment = _run("git", "log", "-1", "--format=%ct").strip()
    again = OUT / "again"
    for folder in (OUT, again):  # the wheel from the source archive: what else lies in the checkout is not in it
        command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT))
        _run(*command, SOURCE_DATE_EPOCH=moment)
    (wheel,), (other,) = OUT.glob("*.whl"), again.glob("*.whl")
    if wheel.read_bytes() != other.read_bytes():
        raise ReleaseError(f"two builds of {wheel.name} differ: what is in it depends on more than the commit")
    shutil.rmtree(again)
    if wrong := faults(wheel, ROOT):
        raise ReleaseError(f"{wheel.name} is not what the checkout has: {'; '.join(wrong)}")
    print(f"{wheel.name}: two builds are the same, byte by byte, and hold the package and nothing else")
    return wheel


def _installed(wheel: Path) -> str:
    """The Python of an environment that holds the wheel with all extras, in the versions and with the hashes of the
    tests, and nothing else."""
    folder, wanted = ROOT / "build/release-environment", ROOT / "build/release-requirements.txt"
    venv.create(folder, clear=True)
    python = str(folder / "bin/python")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    wanted.write_text(f"versioned-streams[{','.join(EXTRAS)}] @ {wheel.as_uri()} --hash=sha256:{digest}\n")
    pins = (FOLDER / "dependencies.txt", FOLDER / f"pyspark-{sparks()[0]}.txt")
    constraints = [word for path in pins for word in ("--constraint", str(path))]
    pip = (sys.executable, "-m", "pip", "--quiet", "--python", python, "install", "--require-hashes")
    _run(*pip, *constraints, "--requirement", str(wanted))
    return python


def _bill(python: str, bill: Path, version: str) -> None:
    """Lists what an environment holds. ReleaseError if that is not all that vsc needs."""
    about = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    described = ROOT / "build/release-pyproject.toml"  # with a version, which setuptools finds in the package
    described.write_text(about.replace('dynamic = ["version"]', f'version = "{version}"'), encoding="utf-8")
    _run(
        sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", str(described), "--mc-type", "library",
        "--output-reproducible", "--output-format", "JSON", "--output-file", str(bill), python,
    )  # fmt: skip
    document = json.loads(bill.read_text(encoding="utf-8"))
    found, project = bill_of(document), tomllib.loads(about)["project"]
    extras = [one for extra in EXTRAS for one in project["optional-dependencies"][extra]]
    needed = {re.split(r"[\[<>=]", one)[0].lower() for one in (*project["dependencies"], *extras)} - {_NAME}
    if missing := needed - found.keys():
        raise ReleaseError(f"the bill of materials lacks {', '.join(sorted(missing))}")
    if document["metadata"]["component"].get("version") != version:
        raise ReleaseError(f"the bill of materials is not of {version}")
    print(f"{bill.name}: {len(found)} packages, CycloneDX {document['specVersion']}")


def _run(*command: str, **variables: str) -> str:
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout, done.stderr, sep="", file=sys.stderr)
        done.check_returncode()
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
