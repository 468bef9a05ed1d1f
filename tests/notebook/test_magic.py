"""`%%vsdl` and what plans show, in a shell of IPython: no Spark."""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import CapturedIO, capture_output

import vsc
from vsc.compiler.emit import emit
from vsc.notebook import show_in_ipython
from vsc.plan import Plan

TEXT = """\
topology shop;
stream sales (id string, currency string, amount double, at timestamp) from memory () key id timestamp at;
table rates (currency string, rate double, at timestamp) from memory () key currency timestamp at
  materialize versioned (retention = 1 day);
stream priced = left join sales with rates on currency select id, amount * rates.rate as usd;
sink priced to memory ();
"""


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "vsc")
    yield shell
    InteractiveShell.clear_instance()


def run(shell: InteractiveShell, text: str) -> tuple[Any, CapturedIO]:
    with capture_output() as shown:
        result = shell.run_cell(text)
    return result, shown


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", text)


def test_a_cell_shows_its_plan_and_binds_it(shell: InteractiveShell) -> None:
    result, shown = run(shell, f"%%vsdl --name shop\n{TEXT}")
    assert result.success
    plan = shell.user_ns["shop"]
    assert isinstance(plan, Plan) and (plan.name, len(plan.nodes)) == ("shop", 4)
    [output] = shown.outputs
    assert output.data["image/svg+xml"] == emit(plan, "svg")
    assert output.data["text/plain"] == emit(plan, "topology")


def test_a_plan_shows_its_picture_types_and_status(shell: InteractiveShell) -> None:
    shell.user_ns["text"] = TEXT
    _, shown = run(shell, "import vsc\ndisplay(vsc.compile(text))")
    [output] = shown.outputs
    html = output.data["text/html"]
    picture = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', html)
    assert picture is not None and b64decode(picture[1]).decode() == emit(vsc.compile(TEXT), "svg")
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    assert rows == [
        ["", "kind", "key", "columns", "versioned"],
        ["sales", "stream", "id string", "currency string, amount double, at timestamp", ""],
        ["rates", "table", "currency string", "rate double, at timestamp", "yes: it is materialized versioned"],
        ["priced", "stream", "currency string", "id string, usd double", ""],
    ]


def test_the_program_decides_without_the_extension(shell: InteractiveShell) -> None:
    """`vsc.compile` alone makes plans show themselves: importing `vsc.api` in IPython is enough."""
    program = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        f"shell.run_cell({f'import vsc; plan = vsc.compile({TEXT!r})'!r})\n"
        "print(sorted(shell.display_formatter.format(shell.user_ns['plan'])[0]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "['image/svg+xml', 'text/html', 'text/plain']\n"


def test_without_ipython_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "IPython")
    show_in_ipython()
    assert "IPython" not in sys.modules


def test_mistakes_show_their_carets_at_the_lines_of_the_cell(shell: InteractiveShell) -> None:
    result, shown = run(shell, "%%vsdl --name shop\n" + TEXT.replace("on currency", "on curency"))
    assert isinstance(result.error_in_exec, vsc.TopologyError)
    lines = plain(shown.stdout).splitlines()
    assert lines[1] == " --> shop:6:47"
    assert (
        lines[3] == "6 | stream priced = left join sales with rates on curency select id, amount * rates.rate as usd;"
    )
    assert lines[4] == "  |                                               ^^^^^^^"
    assert "Traceback" not in shown.stdout
    assert "shop" not in shell.user_ns


def test_an_error_of_compile_shows_its_carets_too(shell: InteractiveShell, tmp_path: Path) -> None:
    path = tmp_path / "t.vdsl"
    path.write_text("sink s to noop ();\n")
    _, shown = run(shell, f"import vsc\nvsc.compile({str(path)!r})")
    lines = plain(shown.stdout).splitlines()
    assert lines[:2] == ["error[VSC103]: there is no node `s`", f" --> {path}:1:6"]
    assert "Traceback" not in shown.stdout


def test_warnings_are_shown_beside_the_picture(shell: InteractiveShell) -> None:
    result, shown = run(shell, "%%vsdl\n" + TEXT + "stream unused = filter sales where amount > 1;\n")
    assert result.success
    assert plain(shown.stderr).startswith("warning[VSC")
    assert len(shown.outputs) == 1


def test_variables_are_filled_in(shell: InteractiveShell) -> None:
    shell.user_ns["least"] = 3
    text = TEXT.replace(
        "sink priced", "stream big = filter sales where amount > ${least};\nsink big to memory ();\nsink priced"
    )
    result, _ = run(shell, '%%vsdl --name shop --var "least= {least}"\n' + text)
    assert result.success
    assert [node.name for node in shell.user_ns["shop"].nodes] == ["sales", "rates", "priced#rekey", "priced", "big"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--query q", "--query is for --run"),
        ("--checkpoint ck", "--checkpoint is for --run"),
        ("--trigger once", "--trigger is for --run"),
        ("--name 5", "'5' is not a valid name for a variable"),
        ("--var x", "--var takes NAME=VALUE: a `=` is missing"),
        ("--var x=1", "--var x: nothing refers to ${x}"),
        ("--var 'x=1", "%%vsdl --var 'x=1: No closing quotation"),
        ("--nmae shop", "unrecognized arguments: --nmae shop"),
    ],
)
def test_wrong_use_is_named(line: str, told: str, shell: InteractiveShell) -> None:
    result, shown = run(shell, f"%%vsdl {line}\n{TEXT}")
    assert not result.success
    assert shown.stderr.splitlines() == [f"UsageError: {told}"]
    assert shown.outputs == []
