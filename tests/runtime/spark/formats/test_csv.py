"""CSV files: what Python's ``csv`` reads, wherever a file is cut; nulls, bad rows, and files of another kind.

Set ``VSC_CSV_FILES`` to run more (``100000``) or others (``5000:6000``) than the usual files; the number is the seed.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.random_topologies.seeds import seeds
from tests.runtime.spark.formats.csv_files import Answer, CsvFile, by_python, by_vsc, random_file, texts
from vsc.plan.nodes import Column
from vsc.plan.types import BINARY
from vsc.runtime.errors import SourceError
from vsc.runtime.spark.formats import csv
from vsc.runtime.spark.formats.csv import CsvCells
from vsc.runtime.spark.formats.csv_dialect import CsvDialect, record_ends
from vsc.runtime.spark.formats.source_columns import BAD, CORRUPT
from vsc.testing import TopologyTestDriver

pytestmark = pytest.mark.long

SEEDS = seeds("VSC_CSV_FILES", 500)
BLOCKS = [SEEDS[start : start + 500] for start in range(0, len(SEEDS), 500)]


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_files_are_read_as_python_reads_them(block: range) -> None:
    for seed in block:
        rng = Random(seed)
        file = random_file(rng)
        (found,) = by_vsc([file], rng)
        assert without_null(found, file) == without_null(by_python(file), file), (seed, file)
        if file.written is not None:
            assert found == file.written, (seed, file)


def without_null(rows: Answer, file: CsvFile) -> Answer:
    """The rows as if null, the text that stands for it and an empty string were the same."""
    return [row if row is None else [(cell or "") if cell != file.dialect.null else "" for cell in row] for row in rows]


def read(
    text: str | bytes, columns: str = "a b", chunk: int = 8 << 20, **options: str
) -> list[tuple[list[str | None], str | None]]:
    """The rows of one file, and why each cannot be read."""
    names = columns.split()
    data = text.encode() if isinstance(text, str) else text
    lines = [*data.removesuffix(b"\n").split(b"\n")]
    batch = pa.record_batch([pa.array(lines, pa.binary()), pa.array(["file:/d/x.csv"] * len(lines))], names=["v", "p"])
    cells = CsvCells(texts(names), CsvDialect.of(options, "source 's'"), "source 's'", ("p",), chunk)
    places = [f"_vsc_column_{i}" for i in range(len(names))]
    return [([row[n] for n in places], row[BAD]) for found in cells([batch]) for row in found.to_pylist()]


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("chunk", [1, 8 << 20])
def test_an_empty_cell_is_null_wherever_it_stands(end: str, chunk: int) -> None:
    text = 'a,b\n"x",\n,\n"",""\n,"y"\n"z",' + end
    wanted = [["x", None], [None, None], ["", ""], [None, "y"], ["z", None]]
    assert read(text, chunk=chunk) == [(row, None) for row in wanted]


def test_line_breaks_in_quotes_stay_as_they_are() -> None:
    text = 'a,b\r\n"1\r\n2","3\n4"\r\n"5\r6",7\r8,9\n'
    for chunk in range(1, len(text)):
        assert [row for row, _ in read(text, chunk=chunk)] == [["1\r\n2", "3\n4"], ["5\r6", "7"], ["8", "9"]]


def test_a_file_is_not_cut_inside_a_cell_with_an_escape() -> None:
    text = 'a,b\n"x\\"\n,y\\"","\\\\"\nu\\,v,w\\\nx\n' * 2
    once = [['x"\n,y"', "\\"], ["u,v", "w\nx"]]
    for chunk in range(1, len(text)):
        assert [row for row, _ in read(text, chunk=chunk, escape="\\")] == [*once, ["a", "b"], *once]


def test_an_escape_that_is_the_quote_says_what_is_so_anyway() -> None:
    assert read('a,b\n"x""y",z\n', escape='"') == [(['x"y', "z"], None)]


def test_a_quote_in_the_middle_of_a_cell_keeps_nothing_back() -> None:
    dialect = CsvDialect()
    assert record_ends(b'5" pipe,1\n6",2\n"7"" ,\n",3\n"8', dialect).tolist() == [10, 15, 26]
    assert record_ends(b'a"\r\nb\r', dialect).tolist() == [4]


def test_what_null_value_says_is_null_besides_the_empty_cell() -> None:
    assert read('a,b\n-,\n"-",""\n', nullValue="-") == [([None, None], None), (["-", ""], None)]


def test_a_row_says_why_it_cannot_be_read() -> None:
    text = b"b,more,a\n1,2,3\n4,5\n6,7,8,9\n\n" + b"\xff,\xfe,\xe4\xf6\n1,\xff,3\n" + b'1,2,"3\n4,5,6\n'
    assert read(text) == [
        (["3", "1"], None),
        ([None, None], "it has 2 cells, not 3"),
        ([None, None], "it has 4 cells, not 3"),
        ([None, None], "column 'a' is not UTF-8 text"),
        (["3", "1"], None),
        ([None, None], "a quote is not closed"),
    ]


@pytest.mark.parametrize("chunk", [1, 8 << 20])
def test_text_behind_a_closing_quote_is_unreadable_as_readers_differ_in_what_it_is(chunk: int) -> None:
    """Python and Arrow read `5 pipe"`, Spark `"5" pipe"`: whoever wrote it did not double the quotes."""
    text = 'a,b\n1,"5"" pipe"\n\n2,"5" pipe"\n"x"y\n"x" ,3\n4,"y"\r\n5,"z"'
    why = "text follows the closing quote of a cell"
    assert [bad or row for row, bad in read(text, chunk=chunk)] == [
        ["1", '5" pipe'], why, "it has 1 cells, not 2", why, ["4", "y"], ["5", "z"],
    ]  # fmt: skip
    assert read('a,b\n"x"\\y,1\n', chunk=chunk, escape="\\")[0][1] == why


def test_binary_is_base64() -> None:
    column = Column("b", BINARY)
    cells = CsvCells((column,), CsvDialect(), "source 's'", ("p",))
    lines = [b"b,a", b"/wAs,", b'"",', b",1", b"ab,", b"\xc3\xa9==,", b'"YWJj\r\nZGVm",']
    batch = pa.record_batch([pa.array(lines, pa.binary()), pa.array(["file:/d/x.csv"] * len(lines))], names=["v", "p"])
    found = [(row["_vsc_column_0"], row[BAD]) for one in cells([batch]) for row in one.to_pylist()]
    wrong = [(None, f"column 'b' (binary) cannot hold '{text}'") for text in ("ab", "é==")]
    assert found == [(b"\xff\x00,", None), (b"", None), (None, None), *wrong, (b"abcdef", None)]


def test_a_quoted_empty_cell_is_null_where_it_cannot_be_a_value(tmp_path: Path) -> None:
    """As in Spark, pandas, DuckDB and Arrow: banks, MySQL and pandas can quote every cell. So is a quoted `nullValue`,
    and what a declared format would read."""
    (tmp_path / "a.csv").write_text(
        '"n","d","t","on","f","o","s","b"\n"1","2.50","2026-01-05T00:00:00Z","05.01.2026","1.5","true","x","YQ=="\n'
        + ",".join(['""'] * 8) + "\n" + ",".join(['"-"'] * 6) + ',"-",""\n'
    )  # fmt: skip
    text = """
    topology t;
    stream s (n int, d decimal(9, 2), t timestamp, `on` date, f double, o boolean, s string, b binary)
      from files (path = 'x', format = 'csv', 'nullValue' = '-', 'dateFormat' = 'dd.MM.yyyy') timestamp 1000;
    sink s to memory ();
    sink dropped to memory ();
    """
    with TopologyTestDriver(text) as driver:
        driver.pipe_file("s", tmp_path / "a.csv")
        first, *others = [list((record.value or {}).values()) for record in driver.read("s")]
        assert driver.read("dropped") == []
    assert first[0] == 1 and first[3] == date(2026, 1, 5) and None not in first
    assert others == [[*[None] * 6, "", b""], [*[None] * 6, "-", b""]]


def test_a_column_that_the_header_does_not_name_is_null() -> None:
    assert read("x,a\n1,2\n") == [(["2", None], None)]
    assert read("x,y\n1,2\n,\n") == [([None, None], None)] * 2
    assert read("") == read("\n\n") == read("a,b") == []


def test_a_column_that_the_header_names_twice_is_refused() -> None:
    with pytest.raises(SourceError, match=r"source 's': the header of file:/d/x.csv names 'a' more than once"):
        read("a,b,a\n1,2,3\n")


@pytest.mark.parametrize(
    ("header", "options", "other", "written"),
    [
        ("a;b;x,y", {"sep": "/"}, "';'", "';'"), ("a;b", {}, "';'", "';'"), ("a\tb", {}, r"'\t'", r"'\t'"),
        ("a|b", {}, "'|'", "'|'"), ("a,b", {"sep": ";"}, "','", "','"), ("a,b", {"delimiter": r"\t"}, "','", "','"),
    ],
)  # fmt: skip
def test_a_file_with_another_separator_says_so(header: str, options: dict[str, Any], other: str, written: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(f"{header}\n1{header[1]}2\n", **options)
    place = "source 's': the header of file:/d/x.csv"
    seen = f"{place} is the single cell {header!r}: its columns seem to be separated by {other}, not by "
    assert caught.value.message.startswith(seen)
    assert caught.value.help == f"write 'sep' = {written} among the options of the source"


def test_a_single_column_may_have_any_name() -> None:
    assert read("a;b\n1\n", "a;b") == [(["1"], None)]
    assert read("x\n1\n") == [([None, None], None)]


def test_the_header_is_the_first_line_with_a_name() -> None:
    assert read("  \n ,\n\na,b\n1,2\n") == [(["1", "2"], None)]
    assert read("  \n,\n") == []


def test_a_header_may_have_to_name_a_column() -> None:
    def first(path: str, header: bytes) -> list[dict[str, Any]]:
        cells = CsvCells(texts("ab"), CsvDialect.of({}, "source 's'"), "source 's'", ("p",), named=True)
        lines = pa.record_batch([pa.array([header, b"1,2"], pa.binary()), pa.array([path] * 2)], names=["v", "p"])
        return [row for found in cells([lines]) for row in found.to_pylist()]

    assert [row["_vsc_column_1"] for row in first("file:/d/x.csv", b"x,b")] == ["2"]
    assert len(first("file:/a=1/b=2/x.csv", b"x,y")) == 1  # the folders have all of its columns
    for path in ("file:/d/x.csv", "file:/b=2/x.csv"):
        with pytest.raises(SourceError, match=r"names none of the declared columns: it is 'x,y'"):
            first(path, b"x,y")


def test_what_is_not_text_or_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SourceError, match=r"the header of file:/d/x.csv is not UTF-8 text"):
        read(b"a,\xff\n1,2\n")
    monkeypatch.setattr(csv, "MAX_RECORD", 1 << 20)
    assert read('a,b\n"' + "x" * (1 << 20) + '",1\n', chunk=1 << 18)[0][0][1] == "1"
    with pytest.raises(SourceError) as caught:
        read('a,b\n1,2\n3,"x' + "y\n" * (1 << 21), chunk=1 << 18)
    assert caught.value.message == (
        "source 's': a record of the file file:/d/x.csv is longer than 1 MiB: it begins with "
        + repr('3,"x' + "y\n" * 28)
    )
    assert caught.value.help == "close the quote, or write 'quote' = '' if a quote is a character like any other"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sep": ";;"}, "'sep' is a single ASCII character, not ';;'"),
        ({"sep": ""}, "'sep' is a single ASCII character, not ''"),
        ({"delimiter": "§"}, "'delimiter' is a single ASCII character, not '§'"),
        ({"quote": "''"}, "'quote' is a single ASCII character, not \"''\""),
        ({"escape": "\n"}, r"'escape' is a single ASCII character, not '\n'"),
        ({"sep": '"'}, "'\"' cannot separate cells and quote or escape as well"),
        ({"lineSep": "|"}, r"'lineSep' is '\n', '\r' or '\r\n' for CSV, not '|'"),
    ],
)
def test_what_cannot_be_a_dialect_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(SourceError) as caught:
        CsvDialect.of(options, "source 's'")
    assert caught.value.message == f"source 's': {message}"


def test_the_text_of_a_record_if_it_is_asked_for() -> None:
    data = b'a,b\n\n1,"x\ny"\r\n2\n\n\xff,3\n4,"z'
    batch = pa.record_batch([pa.array([data]), pa.array(["file:/d/x.csv"])], names=["v", "p"])
    for chunk in (1, 7, 8 << 20):
        cells = CsvCells(texts("ab"), CsvDialect.of({}, "source 's'"), "source 's'", ("p",), chunk, texts=True)
        rows = [row for found in cells([batch]) for row in found.to_pylist()]
        assert [(row[CORRUPT], row[BAD]) for row in rows] == [
            ('1,"x\ny"', None), ("2", "it has 1 cells, not 2"), ("\\xff,3", "column 'a' is not UTF-8 text"),
            ('4,"z', "a quote is not closed"),
        ]  # fmt: skip
