"""What a report of a bug leaves out: each secret that the command was given, wherever the error repeats it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plan.planted import NAMES, TEXTS
from vsc.cli.hidden import without_secrets


@pytest.mark.parametrize("joined", [False, True])
def test_secrets_of_every_origin_are_left_out(joined: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = [(name, f"planted{number}.") for number, name in enumerate(NAMES)]
    within = [(f"setting{number}", text.format(f"planted{number}:")) for number, text in enumerate(TEXTS)]
    settings, topology = tmp_path / "spark.conf", tmp_path / "t.vdsl"
    settings.write_text("".join(f"{name}={value}\n" for name, value in named).replace("\\", "\\\\"))
    topology.write_text("include 'shared.vdsl';\n-- ${used}")
    (tmp_path / "shared.vdsl").write_text("-- ${shared}")
    monkeypatch.setenv("shared", "planted-shared")
    monkeypatch.setenv("used", "planted-used")
    monkeypatch.setenv("SERVICE_TOKEN", "planted-token")
    file = [f"--properties-file={settings}"] if joined else ["--properties-file", str(settings)]
    arguments = ["run", str(topology), *file, "--var", "a=planted-variable", "--conf", "b=planted-setting"]
    shown = [value for _, value in [*named, *within]]
    shown += ["planted-used", "planted-shared", "planted-token", "planted-variable", "planted-setting"]
    assert "planted" not in without_secrets("\n".join(shown), arguments)
