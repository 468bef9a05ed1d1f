"""The commands in the documents are ones that vsc takes; those on the examples are run, but for what needs Spark."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Iterator

import pytest

from tools.docs.blocks import PAGES, ROOT
from vsc.cli import main, whole_parser

pytestmark = [pytest.mark.slow, pytest.mark.seam("the README")]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each command that stands on a line of its own in a block, with its page."""
    for page in PAGES:
        for language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
            for line in (block if language in ("", "sh") else "").replace("\\\n", " ").splitlines():
                if line.startswith("vsc "):
                    words = shlex.split(line, comments=True)[1:]
                    end = next((i for i, word in enumerate(words) if word in ("<", ">", "|", "&&")), len(words))
                    yield str(page.relative_to(ROOT)), words[:end]


COMMANDS = list(commands())
RUNNABLE = [
    list(words)
    for words in dict.fromkeys(tuple(words) for _, words in COMMANDS)
    if words[0] in ("check", "compile", "fmt", "test") and any(word.startswith("examples") for word in words)
    if "--watch" not in words
    if not (words[0] == "test" and len(words) == 2 and words[1].startswith("examples/"))  # `vsc test examples` runs it
]


def test_a_command_is_one_that_vsc_takes(capsys: pytest.CaptureFixture[str]) -> None:
    refused = []
    for page, words in COMMANDS:
        try:
            whole_parser().parse_args(words)
        except SystemExit:
            refused.append((page, words, capsys.readouterr().err))
    assert refused == []


def test_a_command_on_the_examples_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    failed = [words for words in RUNNABLE if main([one for word in words for one in sorted(glob.glob(word)) or [word]])]
    assert failed == []


def test_there_are_commands_to_test() -> None:
    assert len(COMMANDS) > 30
    assert ["test", "examples"] in RUNNABLE
