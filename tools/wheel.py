"""What a wheel of vsc holds, compared with what git has: a file too many, too few, or another one, is a fault."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import zipfile
from pathlib import Path

__all__ = ["faults", "package_files"]

_PLACES = {"vsc": "vsc", **{name: f"vsc/{name}" for name in ("compiler", "grammar", "runtime")}}
"""The folders of the package by the path inside the wheel: docs/decisions/0004."""
_PAGES = {"docs/diagnostics": "vsc/compiler/diagnostics/pages"}
_ABOUT = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt")


def package_files(root: Path) -> dict[str, Path]:
    """The files of the package that git has in the checkout `root`, by their paths inside the wheel."""
    places = {**_PLACES, **_PAGES}
    listed = subprocess.run(["git", "ls-files", "-z", *places], cwd=root, capture_output=True, text=True, check=True)
    found = {}
    for name in filter(None, listed.stdout.split("\0")):
        folder = next(one for one in places if name.startswith(f"{one}/"))
        if not (root / name).is_symlink():
            found[places[folder] + name.removeprefix(folder)] = root / name
    return found


def faults(wheel: Path, root: Path) -> list[str]:
    """What is wrong with the files of a wheel that was built in the checkout `root`."""
    expected = package_files(root)
    with zipfile.ZipFile(wheel) as archive:
        inside = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    about = f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"
    wanted = expected.keys() | {f"{about}/{name}" for name in _ABOUT}
    found = [f"it lacks {name}" for name in sorted(wanted - inside.keys())]
    found += [f"it holds {name}" for name in sorted(inside.keys() - wanted)]
    found += [
        f"{name} is not that of the checkout"
        for name, path in expected.items()
        if name in inside and inside[name] != path.read_bytes()
    ]
    record = inside.get(f"{about}/RECORD", b"").decode().splitlines()
    recorded = dict(line.rsplit(",", 2)[:2] for line in record)
    found += [
        f"RECORD has another hash of {name}"
        for name, content in inside.items()
        if name != f"{about}/RECORD" and recorded.get(name) != f"sha256={_digest(content)}"
    ]
    return found


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
