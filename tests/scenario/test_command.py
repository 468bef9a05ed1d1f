"""``vsc test``: what it runs, what it shows, and how it ends."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from vsc.cli import main
from vsc.extras import install

TOPOLOGY = """\
stream orders (id string, amount int) from memory () key id;
table stock (id string, pieces int, at bigint) from memory () key id timestamp at
materialize versioned (retention = 1 day);
stream seen = left join orders with stock select amount, 12 / amount as part, pieces;
sink seen to console ();
"""
GOOD = """\
topology: ../t.vdsl
scenarios:
  - name: what is joined, and what was removed
    steps:
      - stock: {id: a, pieces: 3, at: 10}
      - delete: {stock: {id: a}}
        timestamp: 20
        expect:
          stock:
            - {key: {id: a}, value: {pieces: 3, at: 10}, timestamp: 10}
            - {key: {id: a}, value: null, timestamp: 20}
      - orders: [{id: a, amount: 2}, {id: b, amount: null}]
        timestamp: 15
      - orders: {id: a, amount: 4}
        timestamp: 25
        expect:
          seen:
            - {key: {id: a}, value: {amount: 2, part: 6, pieces: 3}, timestamp: 15}
            - {key: {id: b}, value: {amount: null, part: null, pieces: null}, timestamp: 15}
            - {key: {id: a}, value: {amount: 4, part: 3.0, pieces: null}, timestamp: 25}
        stores:
          - {store: stock, key: {id: a}, expect: null}
          - {store: stock, key: {id: a}, as_of: 19, expect: {value: {pieces: 3, at: 10}, valid_from: 10, valid_to: 20}}
"""
FAILING = """\
topology: ../t.vdsl
scenarios:
  - name: first
    steps:
      - orders: {id: a, amount: 2}
        timestamp: 15
        expect:
          seen:
            - {key: {id: z}, value: null, timestamp: 1}
            - {key: {id: a}, value: {amount: 2, part: 7, pieces: null}, timestamp: 16}
        stores:
          - {store: stock, key: {id: a}, expect: {value: {pieces: 1, at: 1}, valid_from: 1, valid_to: null}}
      - orders: {id: a, amount: 0}
        timestamp: 1
  - name: "second \\x01 <&>"
    steps:
      - orders: {id: a, amount: 0}
        timestamp: 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "t.vdsl").write_text(TOPOLOGY)
    for name, text in [("good/a", GOOD), ("failing/b", FAILING), ("failing/.hidden/c", "not read")]:
        path = tmp_path / f"{name}.scenario.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_scenarios_that_hold_end_with_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "good", "good/a.scenario.yaml", str(folder / "good")]) == 0
    assert capsys.readouterr() == (
        "good/a.scenario.yaml\n  ok     what is joined, and what was removed\n",
        "1 passed, 0 failed\n",
    )


def test_one_that_fails_shows_expected_and_seen_by_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "."]) == 1
    out, err = capsys.readouterr()
    assert err == "1 passed, 2 failed\n"
    lines = out.splitlines()
    assert lines[:9] == [
        "./failing/b.scenario.yaml",
        "  FAILED first",
        "    ./failing/b.scenario.yaml:8:11: after step 1 `seen` gave other records: 2 expected, 1 seen",
        "      - expected key: {id: z}, value: null, timestamp: 1  # line 9",
        "      - expected key: {id: a}, value: {amount: 2, part: 7.0, pieces: null}, timestamp: 16  # line 10",
        "      + seen     key: {id: a}, value: {amount: 2, part: 6.0, pieces: null}, timestamp: 15",
        "          part: 7.0 expected, 6.0 seen",
        "          timestamp: 16 expected, 15 seen",
        "    ./failing/b.scenario.yaml:12:13: after step 1 the store `stock` gave another answer for {id: a}",
    ]
    assert lines[9:11] == [
        "      - expected value: {pieces: 1, at: 1}, valid_from: 1, valid_to: null  # line 12",
        "      + seen     null",
    ]
    assert "./failing/b.scenario.yaml:17:9: step 1 failed: [VSC902] 'seen'" in out


def test_of_what_was_partly_expected_only_that_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "partial.scenario.yaml").write_text("""\
topology: t.vdsl
scenarios:
  - name: partial
    steps:
      - orders: [{id: a, amount: 2}, {id: b, amount: 3}, {id: c, amount: 4}]
        timestamp: 15
        expect:
          seen:
            - {key: {id: a}, value: {part: 6, ...}, ...}
            - value: {part: 7, ...}
              ...:
            - {value: {pieces: null, ...}, timestamp: 15, ...}
        stores:
          - {store: stock, key: {id: a}, expect: {value: {pieces: 1, ...}, ...}}
      - stock: {id: a, pieces: 3, at: 10}
""")
    assert main(["test", "partial.scenario.yaml"]) == 1
    assert capsys.readouterr().out.splitlines()[2:] == [
        "    partial.scenario.yaml:8:11: after step 1 `seen` gave other records: 3 expected, 3 seen",
        "      =          key: {id: a}, value: {part: 6.0, ...}, ...",
        "      - expected value: {part: 7.0, ...}, ...  # line 10",
        "      + seen     value: {part: 4.0, ...}, ...",
        "          part: 7.0 expected, 4.0 seen",
        "      =          value: {pieces: null, ...}, timestamp: 15, ...",
        "    partial.scenario.yaml:14:13: after step 1 the store `stock` gave another answer for {id: a}",
        "      - expected value: {pieces: 1, ...}, ...  # line 14",
        "      + seen     null",
        "    until then:",
        "      `seen` did not find a row for 3 (no_record)",
    ]


MISSING = """\
topology: t.vdsl
# a comment in front
scenarios:
  - name: one
    steps:
      - orders: [{id: a, amount: 2}, {id: "x #y", amount: 3}]   # two
        timestamp: 2026-03-02T10:00:00.5Z
        expect:   # of all sinks

      - stock: {id: a, pieces: 3, at: 10}
        expect:
          stock: ~   # to be found
          seen:
        stores:
          - {store: stock, key: {id: a}}
          - store: stock   # in a block
            key: {id: z}

          # the end of the stores
      - {orders: {id: a, amount: 4}, timestamp: 25, expect: {seen, stock: []}}   # in flow
      - {orders: {id: b, amount: 4}, timestamp: 26, expect: }
# the last line
"""
WRITTEN = """\
topology: t.vdsl
# a comment in front
scenarios:
  - name: one
    steps:
      - orders: [{id: a, amount: 2}, {id: "x #y", amount: 3}]   # two
        timestamp: 2026-03-02T10:00:00.5Z
        expect:   # of all sinks
          seen:
            - {key: {id: a}, value: {amount: 2, part: 6.0, pieces: null}, timestamp: 2026-03-02T10:00:00.500000Z}
            - {key: {id: 'x #y'}, value: {amount: 3, part: 4.0, pieces: null}, timestamp: 2026-03-02T10:00:00.500000Z}

      - stock: {id: a, pieces: 3, at: 10}
        expect:
          stock:   # to be found
            - {key: {id: a}, value: {pieces: 3, at: 10}, timestamp: 10}
          seen: []
        stores:
          - {store: stock, key: {id: a}, expect: {value: {pieces: 3, at: 10}, valid_from: 10, valid_to: null}}
          - store: stock   # in a block
            key: {id: z}
            expect: null

          # the end of the stores
      - {orders: {id: a, amount: 4}, timestamp: 25, expect: {seen: [{key: {id: a}, value: {amount: 4, part: 3.0, pieces: 3}, timestamp: 25}], stock: []}}   # in flow
      - {orders: {id: b, amount: 4}, timestamp: 26, expect: {seen: [{key: {id: b}, value: {amount: 4, part: 3.0, pieces: null}, timestamp: 26}]} }
# the last line
"""  # noqa: E501


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_is_missing_is_written(newline: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "new.scenario.yaml"
    path.write_bytes(MISSING.replace("\n", newline).encode())
    assert main(["test", "new.scenario.yaml"]) == 1
    assert capsys.readouterr().out.splitlines()[2:5] == [
        "    new.scenario.yaml:8:16: after step 1 nothing is expected of `seen` yet; `vsc test --accept` writes it",
        "      + seen     key: {id: a}, value: {amount: 2, part: 6.0, pieces: null}, timestamp: 1772445600500",
        "      + seen     key: {id: 'x #y'}, value: {amount: 3, part: 4.0, pieces: null}, timestamp: 1772445600500",
    ]
    assert main(["test", "new.scenario.yaml", "good", "--accept"]) == 0
    assert path.read_bytes().decode() == WRITTEN.replace("\n", newline)
    assert capsys.readouterr().err.splitlines() == [
        "new.scenario.yaml:8:16: written: what `seen` gives",
        "new.scenario.yaml:12:11: written: what `stock` gives",
        "new.scenario.yaml:13:11: written: what `seen` gives",
        "new.scenario.yaml:15:13: written: what the store `stock` answers",
        "new.scenario.yaml:16:13: written: what the store `stock` answers",
        "new.scenario.yaml:20:62: written: what `seen` gives",
        "new.scenario.yaml:21:60: written: what `seen` gives",
        "2 passed, 0 failed",
    ]
    assert main(["test", "new.scenario.yaml", "--accept", "--accept-changed"]) == 0
    assert path.read_bytes().decode() == WRITTEN.replace("\n", newline)


def test_nan_and_functions_of_ones_own_are_written_as_well(folder: Path) -> None:
    (folder / "own.vdsl").write_text(
        "function minus (x double) returns double from 'operator:neg';\n"
        "stream s (k string, x double) from memory () key k;\n"
        "stream t = map s select x, minus(x) as y;\nsink t to noop ();\n"
    )
    text = "topology: own.vdsl\nscenarios:\n  - name: a\n    steps:\n      - s: [{k: a, x: .nan}, {k: b, x: 2}]\n"
    path = folder / "own.scenario.yaml"
    path.write_text(f"{text}        timestamp: 1\n        expect:\n          t:\n")
    assert main(["test", str(path), "--functions", "operator", "--accept"]) == 0
    assert path.read_text().splitlines()[-2:] == [
        "            - {key: {k: a}, value: {x: .nan, y: .nan}, timestamp: 1}",
        "            - {key: {k: b}, value: {x: 2.0, y: -2.0}, timestamp: 1}",
    ]


def test_nothing_is_written_if_anything_else_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "new.scenario.yaml"
    path.write_text(MISSING)
    for arguments in (["failing", "--accept"], ["failing", "--accept-changed"]):
        assert main(["test", "new.scenario.yaml", *arguments]) == 1
        assert "nothing is written: something else is wrong" in capsys.readouterr().err
        assert path.read_text() == MISSING
    assert main(["test", "new.scenario.yaml", "--accept", "--watch"]) == 2


CHANGED = """\
topology: t.vdsl
scenarios:
  - name: one
    steps:
      - orders: [{id: a, amount: 2}, {id: b, amount: 3}]
        timestamp: 15
        expect:
          seen:   # both
            - {key: {id: a}, value: {amount: 2, part: 6, pieces: null}, timestamp: 15}   # this one holds
            - key: {id: b}
              value: {part: 5, ...}

              # of b
              ...:
        stores:
          - {store: stock, key: {id: a}, expect: {value: {pieces: 1, at: 1}, valid_from: 1, valid_to: null}}   # none
      - orders: {id: c, amount: 1}
        timestamp: 16
        expect:
          seen: []   # one
"""


def test_what_differs_is_replaced_on_demand(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "changed.scenario.yaml"
    path.write_text(CHANGED)
    assert main(["test", "changed.scenario.yaml", "--accept"]) == 1
    assert path.read_text() == CHANGED
    assert main(["test", "changed.scenario.yaml", "--accept-changed"]) == 0
    expected = CHANGED.replace(
        "- key: {id: b}\n              value: {part: 5, ...}\n\n              # of b\n              ...:\n",
        "- {key: {id: b}, value: {part: 4.0, ...}, ...}\n",
    )
    expected = expected.replace("{value: {pieces: 1, at: 1}, valid_from: 1, valid_to: null}", "null")
    expected = expected.replace(
        "seen: []   # one",
        "seen: [{key: {id: c}, value: {amount: 1, part: 12.0, pieces: null}, timestamp: 16}]   # one",
    )
    assert path.read_text() == expected


def test_what_cannot_be_written_is_refused_with_its_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        CHANGED[: CHANGED.index("        stores:")]
        + """\
      - orders: {id: b, amount: 3}
        timestamp: 15
        expect:
          seen: [&one {key: {id: b}, value: {part: 5, ...}, ...}]
      - orders: {id: b, amount: 3}
        timestamp: 15
        expect:
          seen: [*one]
"""
    )
    (folder / "alias.scenario.yaml").write_text(text)
    assert main(["test", "alias.scenario.yaml", "--accept-changed"]) == 1
    assert "alias.scenario.yaml:22:17: an alias (`*name`) is in the way" in capsys.readouterr().err
    assert (folder / "alias.scenario.yaml").read_text() == text


def test_junit_counts_failures_and_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "good", "failing", "--format", "junit"]) == 1
    out, err = capsys.readouterr()
    assert err == "1 passed, 2 failed\n"
    root = ElementTree.fromstring(out)
    assert root.attrib == {"name": "vsc test", "tests": "3", "failures": "1", "errors": "1"}
    good, failing = root
    assert (good.get("name"), good.get("tests"), good.get("failures")) == ("good/a.scenario.yaml", "1", "0")
    first, second = failing
    assert (first.get("classname"), first.get("name"), first.get("line")) == ("failing.b", "first", "3")
    (failure,), (error,) = first, second
    assert failure.tag == "failure" and "+ seen     key: {id: a}" in (failure.text or "")
    assert second.get("name") == "second \\u0001 <&>"
    assert error.tag == "error" and "division by zero" in (error.get("message") or "")


def test_variables_are_given_as_for_other_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "t.vdsl").write_text(
        TOPOLOGY + "stream big = filter orders where amount > ${big};\nsink big to noop ();\n"
    )
    assert main(["test", "good"]) == 1
    assert "the variable `big` has no value" in capsys.readouterr().err
    assert main(["test", "good", "--var", "big=7"]) == 0
    capsys.readouterr()
    assert main(["test", "good", "--var", "big=7", "--var", "bgi=7"]) == 0
    told = "warning: --var bgi: nothing refers to ${bgi}\n = help: did you mean `--var big=...`?\n"
    assert capsys.readouterr().err == told + "1 passed, 0 failed\n"
    assert main(["test", "good", "--var", "big"]) == 2


def test_a_missing_file_hides_nothing_of_the_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "good/b.scenario.yaml").write_text("topology: ../t.vdsl\nscenarioes: []\n")
    assert main(["test", "nowhere.scenario.yaml", "good"]) == 2
    err = capsys.readouterr().err
    assert "error: there is no file nowhere.scenario.yaml\n" in err and "there is no key in the file" in err


def test_the_report_goes_to_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "good", "--format", "junit", "-o", "report.xml"]) == 0
    assert capsys.readouterr() == ("", "1 passed, 0 failed\n")
    assert ElementTree.parse(folder / "report.xml").getroot().get("tests") == "1"


def test_a_file_that_cannot_be_used_keeps_all_from_running(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "good/b.scenario.yaml").write_text("topology: ../t.vdsl\nscenarioes: []\n")
    assert main(["test", "good"]) == 2
    assert capsys.readouterr() == (
        "",
        "error: good/b.scenario.yaml:2:1: there is no key in the file: `scenarioes`\n"
        " = help: did you mean `scenarios`?\n",
    )


def test_a_refused_topology_ends_with_1_and_shows_its_findings(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "t.vdsl").write_text(TOPOLOGY.replace("amount int", "amount in"))
    assert main(["test", "."]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("error[VSC016]") == 1
    assert "error: ./good/a.scenario.yaml:1:11: the topology t.vdsl is refused\n" in err
    assert "error: ./failing/b.scenario.yaml:1:11: the topology t.vdsl is refused\n" in err


def test_without_a_path_it_is_this_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(folder / "failing")
    assert main(["test"]) == 0
    assert "1 passed, 0 failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t.vdsl"], "t.vdsl is not a scenario file"),
        (["no.scenario.yaml"], "there is no file no.scenario.yaml"),
        (["empty"], "there is no scenario file in empty"),
        (["good", "--format", "xml"], "invalid choice: 'xml'"),
    ],
)
def test_wrong_use_ends_with_2(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "empty").mkdir()
    assert main(["test", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("package", "user"), [("yaml", "vsc test"), ("rocksdict", "vsc.testing")])
def test_a_missing_extra_is_named(package: str, user: str, folder: Path) -> None:
    code = f"import sys\nsys.modules[{package!r}] = None\nfrom vsc.cli import main\nsys.exit(main(['test', 'good']))"
    ended = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (
        2, f"error: {user} needs the package `{package}`, which is not installed\n = help: {install('test')}\n"
    )  # fmt: skip


LATE = """\
stream clicks (id string, at bigint) from memory () key id timestamp at;
table names (id string, name string) from memory () key id;
stream named = left join clicks with names select name;
table counts = aggregate named group by id window tumbling (size = 10 ms) select count(*) as n;
sink counts to memory ();
"""
LATE_SCENARIO = """\
topology: ../late.vdsl
scenarios:
  - name: one is late
    steps:
      - clicks: [{id: a, at: 1}, {id: a, at: 50}, {id: a, at: 2}]
        expect:
          counts: [{value: {n: 1}, ...}, {value: {n: %s}, ...}]
"""


def test_a_failed_scenario_says_what_was_dropped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "late.vdsl").write_text(LATE)
    scenario = folder / "good/late.scenario.yaml"
    scenario.write_text(LATE_SCENARIO % 2)
    assert main(["test", str(scenario)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[-3:] == [
        "    until then:",
        "      `counts` dropped 1 (window_closed)",
        "      `named` did not find a row for 3 (no_record)",
    ]
    assert main(["test", str(scenario), "--format", "junit"]) == 1
    [failure] = ElementTree.fromstring(capsys.readouterr().out).iter("failure")
    assert (failure.text or "").endswith("until then:\n  `counts` dropped 1 (window_closed)\n"
                                         "  `named` did not find a row for 3 (no_record)")  # fmt: skip
    scenario.write_text(LATE_SCENARIO % 1)
    assert main(["test", str(scenario)]) == 0
    assert "until then" not in capsys.readouterr().out
