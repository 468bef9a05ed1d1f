"""The three links that make ``vsc`` one package are in the repository, relative, and lead to their folders."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["compiler", "grammar", "runtime"])
def test_a_folder_at_the_top_is_linked_into_the_package(root: Path, name: str) -> None:
    link = root / "vsc" / name
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{name}"
    assert (link / "__init__.py").samefile(root / name / "__init__.py")
