"""Steps of a scenario that read a file of rows: by the source's format, with what is wrong in it told."""

from __future__ import annotations

import gzip
from pathlib import Path
from xml.etree import ElementTree

import pytest

from vsc.cli import main
from vsc.scenario import ScenarioError, load, play
from vsc.scenario.loader import paths_read

TOPOLOGY = """\
table rates (currency string, rate double, at timestamp)
from files (path = '${data}', format = 'csv', 'sep' = '${sep}', time_zone = 'Europe/Berlin',
  'timestampFormat' = 'd.M.yyyy HH:mm')
key currency timestamp at materialize versioned (retention = 7 days);
stream sales (id string, currency string, amount double) from files (path = 's', format = 'json') key id;
stream named (file string, v int) from files (path = 's', format = 'json') key file timestamp timestamp_millis(v);
table people (id string, name string) from files (path = 'p', format = 'debezium') key id;
stream clicks (user string, page string, h map<string, binary>, part int, place bigint)
from kafka (bootstrap_servers = '${broker}', topic = 'clicks', format = 'json', headers = 'h', partition = 'part',
  offset = 'place')
key user;
table kept (id string, v string)
from kafka (bootstrap_servers = '${broker}', topic = 'k', format = 'string', key_format = 'json') key id;
stream lake (id string) from delta (path = 'd') key id timestamp timestamp_millis(0);
stream old (id string, at timestamp) from files (path = 'o', format = 'orc') key id timestamp at;
stream far (id string, at timestamp)
from files (path = 'o', format = 'csv', 'timestampFormat' = 'yyyy DDD') key id timestamp at;
stream nested (id string, at timestamp)
from files (path = 'o', format = 'parquet', 'datetimeRebaseMode' = 'LEGACY') key id timestamp at;
stream priced = join sales with rates on currency select id, amount * rates.rate as usd;
stream everything = map clicks select *;
sink priced to console ();
sink everything to console ();
sink kept to console ();
sink people to console ();
sink named to noop ();
sink lake to noop ();
sink old to noop ();
sink far to noop ();
sink nested to noop ();
sink dropped to console ();
"""
HEAD = "topology: t.vdsl\nvariables: {sep: ';'}\nscenarios:\n  - name: a\n    steps:\n"
RATES = "currency;rate;at\nEUR;1,1;1.6.2026 10:00\nEUR;1.2;1.6.2026 10:00\nUSD;1;1.6.2026 09:00\n;1;1.6.2026 09:00\n"
SALES = '{"id": "a", "currency": "EUR", "amount": 10}\n{"id": "b", "currency": "USD", "amount": 10}\n'
PRICED = """\
      - rates: {file: data/rates.csv}
      - sales: {file: data/sales.json}
        timestamp: 2026-06-01T08:00Z
        expect:
          priced:
            - {key: {currency: EUR}, value: {id: a, usd: 12.0}, timestamp: 2026-06-01T08:00:00Z}
            - {key: {currency: USD}, value: {id: b, usd: 10.0}, timestamp: 2026-06-01T08:00:00Z}
          dropped:
            - {value: {reason: unreadable, position: '{"row":0}', raw: 'EUR;1,1;1.6.2026 10:00', ...}, ...}
            - {value: {reason: null_key, ...}, ...}
"""
CANNOT = "cannot be read: column 'rate' (double) cannot hold '1,1'"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "t.vdsl").write_text(TOPOLOGY)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/rates.csv").write_text(RATES)
    (tmp_path / "data/sales.json").write_text(SALES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_rows_are_read_as_their_source_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.scenario.yaml").write_text(HEAD + PRICED)
    assert main(["test", "a.scenario.yaml"]) == 0
    place = "a.scenario.yaml:6:9: data/rates.csv: 1 of 4 rows dropped"
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"    {place} (null_key): row 4 has a null key column",
        f"    {place} (unreadable): row 1 {CANNOT}",
    ]


def test_dropped_rows_are_in_junit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.scenario.yaml").write_text(HEAD + PRICED)
    assert main(["test", "a.scenario.yaml", "--format", "junit"]) == 0
    out = ElementTree.fromstring(capsys.readouterr().out).find(".//system-out")
    assert out is not None and (out.text or "").endswith(f"(unreadable): row 1 {CANNOT}")


def test_rows_of_files_come_in_other_orders_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = TOPOLOGY.replace(",\n  'timestampFormat' = 'd.M.yyyy HH:mm'", "").replace(
        "on currency", "on currency grace 1 day"
    )
    (folder / "t.vdsl").write_text(topology)
    lines = "".join(f"EUR;{n};2026-06-01 1{n % 10}:00\n" for n in range(8))
    (folder / "data/rates.csv").write_text("currency;rate;at\n" + lines + "EUR;x;2026-06-02\n")
    steps = (
        "      - rates: {file: data/rates.csv}\n      - sales: {file: data/sales.json}\n        timestamp: 2026-06-02\n"
    )
    (folder / "a.scenario.yaml").write_text(HEAD + steps + "      - drain: true\n        expect: {priced: [{...: }]}\n")
    assert main(["test", "a.scenario.yaml", "--disorder", "20", "--seed", "1"]) == 0
    (folder / "t.vdsl").write_text(
        topology + "table n = to_table all_rates;\nstream all_rates = to_stream rates;\nsink n to noop ();"
    )
    capsys.readouterr()
    assert main(["test", "a.scenario.yaml", "--disorder", "20", "--seed", "1"]) == 1
    told = "        rates: {currency: EUR, rate: 6.0, at: 2026-06-01T14:00:00Z}  # step 1, line 6\n"
    assert told in capsys.readouterr().out


def test_accept_writes_what_files_give(folder: Path) -> None:
    steps = PRICED.partition("        expect")[0] + "        expect: {priced: , ...: }\n".replace(", ...: ", "")
    (folder / "a.scenario.yaml").write_text(HEAD + steps)
    assert main(["test", "a.scenario.yaml", "--accept"]) == 0
    assert "usd: 12.0" in (folder / "a.scenario.yaml").read_text()


def test_change_events_have_their_own_times(folder: Path) -> None:
    event = '{"before": %s, "after": %s, "source": {"ts_ms": %d}, "op": "%s", "ts_ms": 9}\n'
    a, b = '{"id": "a", "name": "A"}', '{"id": "b", "name": "A"}'
    (folder / "p.json").write_text(event % ("null", a, 5, "c") + event % (a, b, 6, "u") + event % (b, "null", 7, "d"))
    (one,) = load("a.scenario.yaml", HEAD + "      - people: {file: p.json}\n        expect: {people: }\n").scenarios
    (wrong,) = play(one).wrong
    seen = [(record.key["id"], record.value, record.timestamp) for record in wrong.seen]  # type: ignore[union-attr]
    assert seen == [("a", {"name": "A"}, 5), ("a", None, 6), ("b", {"name": "A"}, 6), ("b", None, 7)]


def test_records_of_kafka_are_what_kcat_prints(folder: Path) -> None:
    (folder / "c.json").write_text(
        '{"topic":"clicks","partition":2,"offset":3,"tstype":"create","broker":1,"ts":7,"headers":["a","1","a","2"],'
        '"key":"u","payload":"{\\"page\\": \\"p\\"}"}\n'
        '{"ts": 8, "key": "u", "payload": {"page": 1.50}}\n{"ts": 9, "key": "u", "payload": null}\n'
        '{"ts": 9, "key": null, "payload": {}}\n{"ts": 9, "key": "u", "payload": "[]"}\n'
    )
    (folder / "k.json").write_text('{"ts": 5, "key": "\\"x\\"", "payload": "text"}\n{"ts": 6, "key": {"id": "x"}}\n')
    steps = """\
      - clicks: {file: c.json}
        expect:
          everything:
            - {key: {user: u}, value: {page: p, h: {a: !!binary Mg==}, part: 2, place: 3}, timestamp: 7}
            - {key: {user: u}, value: {page: '1.50', h: null, part: null, place: null}, timestamp: 8}
            - {key: {user: u}, value: null, timestamp: 9}
          dropped:
            - {value: {reason: null_key, position: '{"offset":3}', ...}, ...}
            - {value: {reason: unreadable, raw: '[]', ...}, ...}
      - kept: {file: k.json}
        expect: {kept: [{key: {id: x}, value: {v: text}, timestamp: 5}, {key: {id: x}, value: null, timestamp: 6}]}
"""
    (one,) = load("a.scenario.yaml", HEAD + steps).scenarios
    assert play(one).wrong == ()


@pytest.mark.parametrize(
    ("step", "message", "help"),
    [
        ("rates: {file: r.csv}", "there is no file r.csv", "starts at the scenario file's folder"),
        ("rates: {file: data}", "data cannot be read: Is a directory", "name a single file"),
        ("rates: {file: data/rates.csv, rate: 1}", "a file has all that there is of its rows", "remove `rate`"),
        ("rates: {file: [a]}", "a path is text, not a list", ""),
        ("rates: {file: data/rates.csv}\n        timestamp: 1", "reads the times of its rows from the file", "remove"),
        ("sales: {file: data/sales.json}", "has no `timestamp` clause", "`timestamp`"),
        ("people: {file: data/sales.json}\n        timestamp: 1", "reads the times of its rows", "remove"),
        ("lake: {file: data/rates.csv}", "only Spark can read rows of delta", "write the rows"),
        ("old: {file: data/rates.csv}", "only Spark can read files of the format 'orc'", "write the rows"),
        ("nested: {file: a.parquet}", "only Spark can read parquet files with 'datetimeRebaseMode'", "write the rows"),
        ("far: {file: far.csv}", "only Spark can read times by 'timestampFormat' = 'yyyy DDD'", "as string"),
        ("rates: {file: other.csv}", "the header of other.csv is the single cell 'currency,rate'", "'sep' = ','"),
        ("rates: {file: none.csv}", "the header of none.csv names none of the declared columns", "write a header"),
        ("rates: {file: rates.csv.zst}", "only Spark can unpack rates.csv.zst", "pack it as .gz or .bz2"),
        ("rates: {file: cut.csv.gz}", "cut.csv.gz cannot be unpacked", "pack the file again"),
        ("clicks: {file: data/sales.json}", "line 1 of data/sales.json is not a record as `kcat -J`", "payload"),
        ("clicks: {file: bad.json}", "`headers` is not a list of names and values", ""),
        ("clicks: {file: place.json}", "`offset` is not a whole number", ""),
        ("clicks: {file: data/rates.csv}", "line 1 of data/rates.csv is not a record", ""),
        ("clicks: {file: bad.json}\n        timestamp: 1", "from the file (`ts`)", "remove `timestamp`"),
        ("delete: {rates: {file: data/rates.csv}}\n        timestamp: 1", "there is no column in a key", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_before_anything_runs(folder: Path, step: str, message: str, help: str) -> None:
    (folder / "other.csv").write_text("currency,rate\nEUR,1\n")
    (folder / "none.csv").write_text("EUR;1\n")
    (folder / "far.csv").write_text("id,at\na,2026\n")
    (folder / "rates.csv.zst").write_bytes(b"")
    (folder / "a.parquet").write_bytes(b"")
    (folder / "cut.csv.gz").write_bytes(gzip.compress(RATES.encode())[:30])
    (folder / "bad.json").write_text('{"ts": 1, "payload": null, "headers": ["a"]}\n')
    (folder / "place.json").write_text('{"ts": 1, "payload": null, "offset": "3"}\n')
    with pytest.raises(ScenarioError) as caught:
        load("a.scenario.yaml", HEAD + f"      - {step}\n")
    assert message in caught.value.message and help in (caught.value.help or "")
    assert caught.value.line == 6


def test_a_variable_of_the_way_to_read_is_needed(folder: Path) -> None:
    text = HEAD.replace("variables: {sep: ';'}\n", "") + "      - rates: {file: data/rates.csv}\n"
    with pytest.raises(ScenarioError, match=r"the variable \$\{sep\} has no value"):
        load("a.scenario.yaml", text)
    assert load("a.scenario.yaml", text, {"sep": ";"}).scenarios


def test_a_column_called_file_is_a_column(folder: Path) -> None:
    (one,) = load(
        "a.scenario.yaml", HEAD + "      - named: {file: a, v: 1}\n      - named: {file: b}\n        timestamp: 1\n"
    ).scenarios
    assert play(one).wrong == ()


def test_an_empty_file_has_no_rows(folder: Path) -> None:
    (folder / "data/rates.csv").write_text("")
    (one,) = load(
        "a.scenario.yaml", HEAD + "      - rates: {file: data/rates.csv}\n        expect: {rates: []}\n"
    ).scenarios
    assert play(one).wrong == ()


def test_what_is_watched(folder: Path) -> None:
    assert paths_read("x/a.scenario.yaml", HEAD + PRICED) == (
        Path("x/t.vdsl"),
        [Path("x/data/rates.csv"), Path("x/data/sales.json")],
    )
