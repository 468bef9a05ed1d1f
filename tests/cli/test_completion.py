"""Completion: the scripts fit the commands, and work in real shells."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import on_path
from tools.completions import FOLDER, script
from vsc.cli import COMMANDS, main
from vsc.cli.completion import SHELLS

LINES = [
    ("vsc ", set(COMMANDS)),
    ("vsc com", {"compile", "completion"}),
    ("vsc check --f", {"--format"}),
    ("vsc check --format g", {"github"}),
    ("vsc compile top", {"topology.vdsl"}),
    ("vsc store s", {"scan"}),
    ("vsc store get --as", {"--as-of"}),
    ("vsc completion f", {"fish"}),
]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_fit_the_commands(shell: str) -> None:
    """After a change of a command's arguments: `python -m tools.completions`."""
    assert (FOLDER / f"vsc.{shell}").read_text() == script(shell)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == (FOLDER / f"vsc.{shell}").read_text()


@pytest.mark.parametrize(("line", "words"), LINES)
def test_bash_completes(line: str, words: set[str], tmp_path: Path) -> None:
    program = """
    eval "$(vsc completion bash)"
    read -ra COMP_WORDS <<< "$1"; [[ $1 == *' ' ]] && COMP_WORDS+=("")
    COMP_LINE=$1 COMP_POINT=${#1} COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    "$(complete -p vsc | sed -E 's/.*-F ([^ ]+).*/\\1/')" vsc "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    assert completed(["bash", "--norc", "-c", program, "-", line], tmp_path) == words


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(("line", "words"), LINES)
def test_fish_completes(line: str, words: set[str], tmp_path: Path) -> None:
    program = "vsc completion fish | source; complete -C $argv[1]"
    assert completed(["fish", "--no-config", "-c", program, line], tmp_path) == words


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes(tmp_path: Path) -> None:
    """In a terminal of its own, as zsh only completes there: what a tab makes of the line."""
    program = r"""
    zmodload zsh/zpty; zpty z zsh -f -i
    zpty -w z 'autoload -U compinit; compinit -u -D; eval "$(vsc completion zsh)"; compdef _shtab_vsc vsc; PS1=; clear'
    zpty -w z $'vsc check --format gi\t; print done'
    while zpty -r z line; do print -r -- "$line"; [[ $line == *$'\n'done* || $line == done* ]] && break; done
    """
    done = subprocess.run(
        ["zsh", "-f", "-c", program], env=on_path(tmp_path), capture_output=True, text=True, timeout=60
    )
    assert re.search(r"--format github\b", done.stdout), done.stdout + done.stderr


def completed(command: list[str], folder: Path) -> set[str]:
    """What the shell offers in a folder with a topology."""
    inside = folder / "project"
    inside.mkdir()
    (inside / "topology.vdsl").touch()
    done = subprocess.run(command, cwd=inside, env=on_path(inside), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return {line.split("\t")[0].strip() for line in done.stdout.splitlines()}
