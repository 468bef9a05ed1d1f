"""The optional parts of vsc: which package belongs to which extra, and how to install it.

The command and the package are called ``vsc``; the distribution is not, since ``vsc`` on PyPI is another project. Only
this module and ``pyproject.toml`` know the distribution's name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

__all__ = ["DISTRIBUTION", "MissingExtra", "extra_of", "install", "required", "spec_of"]

DISTRIBUTION = "versioned-streams"
_EXTRAS = {
    "pyspark": "spark", "pandas": "spark", "google": "spark", "rich": "spark", "packaging": "spark",
    "pyarrow": "test", "numpy": "test", "rocksdict": "test", "yaml": "test",
    "pygls": "lsp", "lsprotocol": "lsp",
    "prometheus_client": "metrics", "confluent_kafka": "kafka", "fastavro": "kafka", "psycopg": "postgres",
    "watchfiles": "watch",
    "authlib": "registry", "cachetools": "registry", "httpx2": "registry", "httpx": "registry", "attrs": "registry",
    "certifi": "registry", "grpc_tools": "registry",
}  # fmt: skip


class MissingExtra(ModuleNotFoundError):
    """A package of an extra is not installed. `message` says so; `help` is the command that installs it."""

    def __init__(self, user: str, package: str, extra: str) -> None:
        self.message = f"{user} needs the package `{package}`, which is not installed"
        self.help = install(extra)
        super().__init__(f"{self.message}: {self.help}", name=package)


def extra_of(package: str) -> str:
    """The extra that brings a package, by its name for pip or for Python."""
    found = _EXTRAS.get(package.replace("-", "_"), "spark")
    return "spark" if found == "test" else found


def install(extra: str) -> str:
    """The command that installs `extra`.

    If vsc is installed, the distribution's name keeps pip to that installation: pip takes only the extra's packages
    from an index. If it is not (a checkout on the path), pip has to install from the checkout.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # imported late: `vsc check` does not need it

    try:
        distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return f"pip install '.[{extra}]' in a checkout of vsc"
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def spec_of(package: str) -> ModuleSpec | None:
    """Where Python finds a package; None if it is not installed. The package is not imported."""
    from importlib.util import find_spec

    try:
        return find_spec(package)
    except ModuleNotFoundError:  # said by an import hook
        return None


@contextmanager
def required(user: str, extra: str | None = None) -> Iterator[None]:
    """Raises `MissingExtra` if an import inside fails because an extra is not installed.

    `user` is what needs the package. `extra` is the extra to name, if one has all that is needed; default: the one
    that the missing package belongs to.
    """
    try:
        yield
    except MissingExtra:
        raise
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        found = _EXTRAS.get(package)
        if found is None:
            raise
        raise MissingExtra(user, package, extra or found) from error
