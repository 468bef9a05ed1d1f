"""What is missing is named with the command that installs it, and that command can never bring another project."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from vsc.extras import DISTRIBUTION, MissingExtra, install, required

WITHOUT = """
import json, sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
try:
    {code}
except ImportError as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""
"""Runs `code` where the packages in `missing` are not there."""


def _installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def distribution(name: str) -> object:
        if name not in names:
            raise PackageNotFoundError(name)
        return object()

    monkeypatch.setattr("importlib.metadata.distribution", distribution)


def test_an_installed_vsc_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(monkeypatch, "versioned-streams")
    assert install("spark") == "pip install 'versioned-streams[spark]'"


def test_a_checkout_is_installed_from_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(monkeypatch, "vsc")  # another project's, or an installation from before the distribution's name
    assert install("spark") == "pip install '.[spark]' in a checkout of vsc"


def test_the_name_stands_in_the_package_as_in_the_project(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["scripts"]) == (DISTRIBUTION, {"vsc": "vsc.cli:main"})


def test_the_other_project_on_the_index_is_never_advised(root: Path) -> None:
    files = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False).stdout.split()
    texts = [root / name for name in files if name.endswith((".py", ".md", ".toml", ".yml", "Makefile", "run"))]
    own = re.compile(r"vsc\[[a-z]|install (--\S+ )*'?vsc\b")
    found = [str(path) for path in texts if path.is_file() and path != Path(__file__) and own.search(path.read_text())]
    assert found == []


def test_other_missing_modules_are_left_alone() -> None:
    with pytest.raises(ModuleNotFoundError) as caught, required("this"):
        raise ModuleNotFoundError("No module named 'ours'", name="ours")
    assert type(caught.value) is ModuleNotFoundError


def test_the_first_to_name_a_missing_extra_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(monkeypatch, "versioned-streams")
    with pytest.raises(MissingExtra) as caught, required("vsc test"), required("vsc.testing", "test"):
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow.lib")
    assert caught.value.message == "vsc.testing needs the package `pyarrow`, which is not installed"
    assert caught.value.help == "pip install 'versioned-streams[test]'"


@pytest.mark.parametrize(
    ("code", "missing", "user", "package", "extra"),
    [
        ("import vsc.testing", ["numpy", "pyarrow", "rocksdict"], "vsc.testing", "numpy", "test"),
        ("from vsc.runtime.spark import start", ["pyspark"], "vsc.runtime.spark", "pyspark", "spark"),
        ("from vsc.runtime.spark import start", ["numpy"], "vsc.runtime.spark", "numpy", "spark"),
    ],
)
def test_an_import_names_its_extra(code: str, missing: list[str], user: str, package: str, extra: str) -> None:
    program = WITHOUT.format(code=code, missing=missing)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    told = f"{user} needs the package `{package}`, which is not installed: {install(extra)}"
    assert json.loads(done.stdout) == ["MissingExtra", told]


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("arguments", "missing", "told", "extra"),
    [
        ([], ["pyspark", "rich"], "vsc run needs pyspark, rich, not installed here", "spark"),
        (
            ["--metrics", "prometheus:9464"],
            ["prometheus_client"],
            "vsc run --metrics needs the package `prometheus_client`, which is not installed",
            "metrics",
        ),
    ],
)
def test_a_run_names_its_extra_before_spark_starts(
    arguments: list[str], missing: list[str], told: str, extra: str, root: Path, tmp_path: Path
) -> None:
    options = [
        "--checkpoint",
        str(tmp_path / "ck"),
        "--var",
        f"data={root}/examples/payments/data",
        "--var",
        f"out={tmp_path}/out",
    ]
    command = ["run", str(root / "examples/payments/topology.vdsl"), *options, *arguments]
    code = f"import vsc.cli, vsc.cli.run; vsc.cli.run.check_java = print; sys.exit(vsc.cli.main({command!r}))"
    program = WITHOUT.format(code=code, missing=missing)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    lines = [line.strip(" =") for line in done.stderr.splitlines()]
    assert (done.returncode, lines) == (2, [f"error: {told}", f"help: {install(extra)}"])


@pytest.mark.quick(1)
@pytest.mark.parametrize("command", ["check", "test"])
def test_watch_names_its_extra(command: str, root: Path) -> None:
    code = f"import vsc.cli; sys.exit(vsc.cli.main({[command, str(root / 'examples/payments'), '--watch']!r}))"
    program = WITHOUT.format(code=code, missing=["watchfiles"])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    lines = [line.strip(" =") for line in done.stderr.splitlines()]
    told = f"error: vsc {command} --watch needs the package `watchfiles`, which is not installed"
    assert (done.returncode, lines) == (2, [told, f"help: {install('watch')}"])


def test_the_language_server_names_its_extra() -> None:
    code = "import vsc.cli; sys.exit(vsc.cli.main(['lsp']))"
    program = WITHOUT.format(code=code, missing=["pygls", "lsprotocol"])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    lines = [line.strip(" =") for line in done.stderr.splitlines()]
    told = "error: vsc lsp needs the package `lsprotocol`, which is not installed"
    assert (done.returncode, lines) == (2, [told, f"help: {install('lsp')}"])
