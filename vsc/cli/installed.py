"""The packages that executors need, as they are installed here, with all that these need in turn."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from vsc.cli.errors import Refused
from vsc.cli.problems import Problem
from vsc.extras import extra_of, install

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from vsc.plan.nodes import Plan

__all__ = ["Installed", "installed_for"]

_ELSEWHERE = "put vsc and its extras into a virtual environment, and run its vsc pack"


@dataclass(frozen=True, slots=True)
class Installed:
    """A package that is installed here."""

    found: Distribution

    @property
    def name(self) -> str:
        """The package's name for pip."""
        return self.found.name

    @property
    def version(self) -> str:
        """The package's release."""
        return self.found.version

    def files(self) -> Iterator[tuple[str, str]]:
        """Its files: their names below ``site-packages``, and where they are. Commands are left out.

        Raises `Refused` if some are missing, or somewhere else.
        """
        self._check()
        for file in self.found.files or ():
            if ".." not in file.parts and not os.path.isabs(file):
                place = str(file.locate())
                if os.path.isfile(place):
                    yield file.as_posix(), place
                elif file.suffix != ".pyc":
                    raise _unusable(f"{place} of the package {self.name} is missing", f"install {self.name} again")

    def _check(self) -> None:
        told = self.found.read_text("direct_url.json")
        if told is not None and json.loads(told).get("dir_info", {}).get("editable"):
            raise _unusable(f"{self.name} is installed as a link to its source", f"install {self.name} without -e")
        if (self.found.read_text("INSTALLER") or "").strip() == "conda":
            raise _unusable(
                f"{self.name} is installed by conda, with libraries outside of the package",
                "make the archive with conda-pack, which takes Python along",
            )
        if not self.found.files:
            raise _unusable(f"the package {self.name} does not say which files it has", _ELSEWHERE)


def installed_for(plan: Plan | None) -> dict[str, Installed]:
    """What the tasks of `plan` import, or those of any plan, as far as it is here; by names in one form, sorted.

    Raises `Refused` for what is missing.
    """
    from vsc.runtime.spark.session.packages import all_packages, asked_of, packages_of

    found: dict[str, Installed] = {}
    for name, asked in asked_of(all_packages() if plan is None else packages_of(plan)).items():
        try:
            _take(asked, found, frozenset())
        except PackageNotFoundError as error:
            if plan is None and extra_of(name) != "spark":
                continue
            raise _unusable(f"the package {error.name} is not installed", install(extra_of(name))) from error
    return dict(sorted(found.items()))


def _take(asked: Requirement, found: dict[str, Installed], above: frozenset[str]) -> None:
    """Adds a package, and what it needs here."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    package = distribution(asked.name)
    whole = f"{canonicalize_name(asked.name)}[{','.join(sorted(asked.extras))}]"
    if whole in above:
        return
    found[canonicalize_name(asked.name)] = Installed(package)
    for needed in map(Requirement, package.requires or ()):
        extras = [{"extra": extra} for extra in ("", *asked.extras)]
        if needed.marker is None or any(needed.marker.evaluate(extra) for extra in extras):
            _take(needed, found, above | {whole})


def _unusable(message: str, help: str) -> Refused:
    return Refused(Problem(f"vsc pack: {message}", help), 1)
