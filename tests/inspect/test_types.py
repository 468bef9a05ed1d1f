"""The types that are declared: they read every value, and nothing of it is lost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from vsc.inspect import InspectError, Wanted, survey
from vsc.inspect.keys import KeySearch, Repeats
from vsc.inspect.model import DataColumn
from vsc.plan.types import STRING

NOW = 1_795_000_000_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def types(path: str) -> dict[str, str]:
    return {column.name: str(column.type) for column in look(path).columns}


def look(path: str) -> Any:
    return survey(path, Wanted(now=NOW))


@pytest.mark.parametrize(
    ("values", "type"),
    [
        ([1, None, -5], "bigint"),
        ([2**63 - 1], "bigint"),
        ([2**63], "decimal(19,0)"),
        ([10**40], "string"),
        ([1, 2.5], "double"),
        ([2**60 + 1, 0.5], "string"),
        ([True, None], "boolean"),
        ([True, 1], "string"),
        (["a", 1], "string"),
        (["2026-03-02"], "date"),
        (["2026-03-02", "2026-03-02T10:00"], "timestamp"),
        (["2026-03-02T10:00:00.123+02:00"], "timestamp"),
        (["2026-03-02T25:00:00Z"], "string"),
        (["2026-02-30"], "string"),
        (["2026"], "string"),
        (["1"], "string"),
        ([None], "string"),
        ([{}], "string"),
        ([[]], "array<string>"),
        ([[1], [2.5], None], "array<double>"),
        ([{"a": 1}, {"b": "x"}], "struct<a:bigint,b:string>"),
        ([[{"a": [1]}]], "array<struct<a:array<bigint>>>"),
        ([{f"k{i}": i} for i in range(30)], "map<string,bigint>"),
        ([{f"k{i}": i for i in range(30)}], "struct<" + ",".join(f"k{i}:bigint" for i in range(30)) + ">"),
    ],
)
def test_json(values: list[Any], type: str) -> None:
    Path("x.json").write_text("".join(json.dumps({"x": value}) + "\n" for value in values))
    assert types("x.json") == {"x": type}


def test_json_fractions_with_more_digits_than_a_double_has_are_decimals() -> None:
    Path("x.json").write_text('{"x": 12345678901234567890.12}\n{"x": 1.005}\n{"x": 7}\n')
    assert types("x.json") == {"x": "decimal(23,3)"}


@pytest.mark.parametrize(
    ("cells", "type"),
    [
        (["1", "", "-20"], "bigint"),
        (["1700000000123456789"], "bigint"),
        (["99999999999999999999"], "decimal(20,0)"),
        (["007"], "string"),
        (["+49123"], "string"),
        (["1.5", "2"], "double"),
        (["1e3", "-0.5"], "double"),
        (["nan", "", "1"], "double"),
        (["1.50", "-12.25"], "double"),
        (["123456789012345678.55"], "decimal(20,2)"),
        (["true", "False"], "boolean"),
        (["0", "1"], "bigint"),
        (["2026-03-02", ""], "date"),
        (["2026-03-02 10:00:00"], "timestamp"),
        (["1,5"], "string"),
        (["x"], "string"),
        (["", ""], "string"),
        (['""', "1"], "bigint"),
        (['""', "1.5"], "double"),
        (['""', "true"], "boolean"),
        (['""', "2026-03-02"], "date"),
        (['""', "2026-03-02 10:00:00"], "timestamp"),
        (['""', "x"], "string"),
        (['""', '""'], "string"),
    ],
)
def test_csv(cells: list[str], type: str) -> None:
    Path("x.csv").write_text("k;x\n" + "".join(f"a;{cell}\n" for cell in cells))
    assert types("x.csv") == {"k": "string", "x": type}


@pytest.mark.parametrize("sep", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(sep: str) -> None:
    rows = [["id", "text", "n"], ["1", '"a,b;c|d\te"', "2.5"], ["2", "x", "3.5"]]
    Path("x.csv").write_text("".join(sep.join(row) + "\n" for row in rows))
    seen = look("x.csv")
    assert [(column.name, str(column.type)) for column in seen.columns] == [
        ("id", "bigint"), ("text", "string"), ("n", "double"),
    ]  # fmt: skip
    assert seen.headers.options == ((("sep", sep.replace("\t", r"\t")),) if sep != "," else ())


def test_one_text_for_null_is_an_option_and_several_are_told() -> None:
    Path("x.csv").write_text("id,n\n1,NA\n2,5\n3,")
    seen = look("x.csv")
    assert (types("x.csv"), seen.headers.options) == ({"id": "bigint", "n": "bigint"}, (("nullValue", "NA"),))
    assert seen.profile.nulls == {"id": 0, "n": 2}
    Path("x.csv").write_text("id,n\n1,NA\n2,5\n3,?\n4,")
    seen = look("x.csv")
    assert (seen.columns[1].type, seen.columns[1].notes, seen.headers.options) == (
        STRING, ("2 × ? or NA, else bigint",), (),
    )  # fmt: skip
    assert seen.profile.nulls == {"id": 0, "n": 1}


def test_quoted_empty_cells_are_null_but_in_texts() -> None:
    Path("x.csv").write_text('id,n,day,text,at\n1,"","","",""\n"2",5,"2026-03-02","a","02.03.2026 10:00:00"\n')
    seen = look("x.csv")
    assert types("x.csv") == {"id": "bigint", "n": "bigint", "day": "date", "text": "string", "at": "string"}
    assert seen.profile.nulls == {"id": 0, "n": 1, "day": 1, "text": 0, "at": 0}
    assert (seen.columns[4].notes, seen.columns[4].patterns) == (
        ("times written as dd.MM.yyyy HH:mm:ss, and empty ones",), (),
    )  # fmt: skip
    Path("z.csv").write_text('n,text\n"NA","NA"\n"5","a"\n"",b\n')
    seen = look("z.csv")
    assert (types("z.csv"), seen.headers.options) == ({"n": "bigint", "text": "string"}, (("nullValue", "NA"),))
    assert seen.profile.nulls == {"n": 2, "text": 0}
    assert seen.headers.notes == ("'NA' stands for a missing value, so it is null in every column",)
    Path("y.csv").write_text('n\n"1,5"\n""\n')
    assert look("y.csv").columns[0].notes[0].startswith("decimal commas: try_cast(replace(n, ',', '.')")


def test_rows_that_parquet_holds_and_a_run_cannot_read() -> None:
    Path("in").mkdir()
    pq.write_table(pa.table({"x": pa.array([5, 2**53 + 1, None], pa.int64())}), "in/a.parquet")
    pq.write_table(pa.table({"x": pa.array([1.5], pa.float64())}), "in/b.parquet")
    seen = look("in")
    assert (types("in"), seen.profile.rows, seen.profile.nulls) == ({"x": "double"}, 3, {"x": 1})
    assert (seen.headers.unreadable, seen.headers.first_unreadable) == (
        1,
        "in/a.parquet, row 2: x does not fit in double",
    )
    far = pa.array([1, 2**62], pa.int64()).view(pa.timestamp("ms"))
    pq.write_table(pa.table({"id": [1, 2], "at": far}), "c.parquet")
    seen = look("c.parquet")
    assert (seen.profile.rows, seen.headers.unreadable, seen.headers.first_unreadable) == (
        1, 1, "c.parquet, row 2: at does not fit in timestamp",
    )  # fmt: skip


@pytest.mark.parametrize("end", ["", "\n"])
def test_csv_rows_with_text_behind_a_closing_quote_are_not_looked_at(end: str) -> None:
    Path("x.csv").write_text('id,n\n1,2\n"5" pipe,x\n"a\nb",\n"7"" pipe",3\n8,"9"x' + end)
    seen = look("x.csv")
    assert {column.name: str(column.type) for column in seen.columns} == {"id": "string", "n": "bigint"}
    assert (seen.headers.unreadable, seen.profile.rows, seen.profile.nulls["n"]) == (2, 3, 1)
    assert seen.headers.first_unreadable == "x.csv, row 2: text follows the closing quote of a cell"


def test_csv_in_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f'{n},"a ""{n}\n"' if n % 3 else f'{n},"b"{n}' for n in range(20_000)]
    Path("x.csv").write_text("id,v\n" + "\n".join(rows))
    monkeypatch.setattr("vsc.inspect.delimited._BLOCK", 1000)
    seen = look("x.csv")
    assert (seen.headers.unreadable, seen.profile.rows) == (6667, 13_333)


def test_csv_rows_and_columns_that_a_run_cannot_use() -> None:
    Path("x.csv").write_text(',id,v,v\n0,a,1,2\n1,b\n2,"c\nd",3,4\n')
    seen = look("x.csv")
    assert [column.name for column in seen.columns] == ["id"]
    assert [name for name, _ in seen.headers.left_out] == ["(no name)", "v"]
    assert (seen.headers.unreadable, seen.profile.rows) == (1, 2)
    assert seen.headers.first_unreadable == "x.csv, row 2: 2 cells where the header has 4"


def test_json_rows_that_are_no_rows_are_counted() -> None:
    Path("x.json").write_text('{"id": 1}\n{"id": "\\ud800"}\n\n{"id": \n7\n{"id": 2}\n')
    seen = look("x.json")
    assert (types("x.json"), seen.headers.unreadable, seen.profile.rows) == ({"id": "bigint"}, 3, 2)
    assert seen.headers.first_unreadable == "x.json:2: half of a surrogate pair"


@pytest.mark.parametrize(
    ("value", "why"),
    [("[" * 20_000 + "]" * 20_000, "nested too deeply"), ("9" * 5_000, "a number with too many digits")],
    ids=["deep", "long"],
)
def test_json_that_python_does_not_read_is_counted(value: str, why: str) -> None:
    Path("x.json").write_text(f'{{"id": 1}}\n{{"id": {value}}}\n')
    seen = look("x.json")
    assert (types("x.json"), seen.headers.unreadable, seen.profile.rows) == ({"id": "bigint"}, 1, 1)
    assert seen.headers.first_unreadable == f"x.json:2: {why}"


def test_compressed_files_are_read() -> None:
    Path("in").mkdir()
    Path("in/a.csv.gz").write_bytes(gzip.compress(b"id,n\n1,2.5\n"))
    assert types("in") == {"id": "bigint", "n": "double"}


@pytest.mark.parametrize(
    ("array", "type"),
    [
        (pa.array([1], pa.uint8()), "smallint"),
        (pa.array([1], pa.uint64()), "decimal(20,0)"),
        (pa.array(["a"]).dictionary_encode(), "string"),
        (pa.array([1], pa.timestamp("ms")), "timestamp"),
        (pa.array([1], pa.timestamp("ns")), "timestamp"),
        (pa.array([1], pa.time64("us")), "bigint"),
        (pa.array([[1]], pa.large_list(pa.int32())), "array<int>"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "map<string,bigint>"),
        (pa.array([b"ab"], pa.binary(2)), "binary"),
    ],
)
def test_parquet(array: pa.Array, type: str) -> None:
    pq.write_table(pa.table({"x": array}), "x.parquet")
    assert types("x.parquet") == {"x": type}


def test_timestamps_of_96_bits_are_timestamps() -> None:
    at = pa.array([1_700_000_000_000_000], pa.timestamp("us"))
    pq.write_table(pa.table({"at": at}), "x.parquet", use_deprecated_int96_timestamps=True)
    assert types("x.parquet") == {"at": "timestamp"}
    assert look("x.parquet").profile.times.first == 1_700_000_000_000


def test_what_spark_cannot_read_is_left_out() -> None:
    at = pa.array([1], pa.timestamp("us", "UTC"))
    orc.write_table(pa.table({"id": pa.array([1]), "x": at}), "x.orc")
    assert look("x.orc").headers.left_out == (("x", "Spark cannot read timestamp[ns, tz=UTC] from ORC"),)


def test_files_with_other_types_get_the_wider_one_or_a_word_about_it() -> None:
    Path("in").mkdir()
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": pa.array([1.5], pa.float32())}), "in/1.parquet")
    pq.write_table(pa.table({"a": pa.array([1], pa.int64()), "b": pa.array(["x"])}), "in/2.parquet")
    seen = look("in")
    assert str(seen.columns[0].type) == "bigint" and seen.columns[0].notes == ()
    assert seen.columns[1].notes == ("float in in/1.parquet, but string in in/2.parquet: a run stops there",)


def test_a_file_of_another_format_than_its_name_says() -> None:
    Path("x.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(InspectError, match=r"x\.parquet cannot be read: "):
        look("x.parquet")


# ------------------------------------------------------------------------------------------------------------ keys


def keys(columns: Mapping[str, Sequence[str | None]], times: list[int] | None = None) -> Any:
    import numpy as np

    search = KeySearch([DataColumn(name, STRING) for name in columns])
    rows = len(next(iter(columns.values())))
    arrays = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    for start in range(0, rows, 2):
        part = {name: array.slice(start, 2) for name, array in arrays.items()}
        count = len(next(iter(part.values())))
        search.see(part, count, None if times is None else np.array(times[start : start + 2], np.int64))
    return search.found(None)


def test_ids_come_first_and_many_nulls_are_no_key() -> None:
    found = keys({"x": ["a", "b", "c"], "order_id": ["1", "2", "3"], "y": ["a", None, "b"]})
    assert (found.rows, found.unique, found.entities) == (3, (("order_id",), ("x",)), ())


def test_a_few_nulls_do_not_keep_an_id_from_being_the_key() -> None:
    some = [str(n) if n % 30 else None for n in range(1, 61)]
    found = keys({"order_id": [*some], "x": [f"x{n}" for n in range(60)]})
    assert found.unique == (("x",), ("order_id",))  # one without nulls comes first
    found = keys({"order_id": ["1", *some[1:]], "kwh": [str(n % 50) for n in range(60)]})
    assert found.unique == (("order_id",),)
    found = keys({"order_id": ["2", *some[1:]], "kwh": [str(n % 50) for n in range(60)]})
    assert (found.unique, found.repeats and found.repeats.column) == ((("kwh", "order_id"),), "order_id")
    users = [f"u{n % 4}" if n % 30 else None for n in range(1, 61)]
    (entity,) = keys({"user": users}, list(range(60))).entities
    assert (entity.columns, entity.values, entity.shared) == (("user",), 4, 0)


def test_combinations_are_tried_where_no_column_is_unique() -> None:
    found = keys({"a": ["1", "1", "2", "2"], "b": ["1", "2", "1", "2"], "c": ["1", "1", "1", "1"]})
    assert found.unique == (("a", "b"),)


def test_a_table_s_key_is_unique_with_the_time_or_nearly() -> None:
    found = keys({"sensor": ["s1", "s2", "s1", "s2"]}, [1, 1, 2, 2])
    assert [(e.columns, e.values, e.shared) for e in found.entities] == [(("sensor",), 2, 0)]
    many = ["s1", "s2"] * 200
    found = keys({"sensor": many}, [*range(399), 397])
    assert [(e.columns, e.values, e.shared) for e in found.entities] == [(("sensor",), 2, 1)]


def test_an_operation_alone_is_no_key() -> None:
    found = keys({"op": ["c", "u", "u", "d"]}, [1, 2, 3, 4])
    assert (found.unique, found.entities) == ((), ())
    found = keys({"op": ["c", "u", "u", "d"], "customer": ["1", "1", "2", "2"]}, [1, 2, 3, 4])
    assert [e.columns for e in found.entities] == [("customer",)]
    assert [e.columns for e in keys({"event_type": ["a", "b", "a"]}, [1, 2, 3]).entities] == []
    assert [e.columns for e in keys({"type": ["a", "b", "a"]}, [1, 2, 3]).entities] == [("type",)]


def test_a_history_with_corrections_has_a_key() -> None:
    found = keys({"product": ["p", "q"] * 10}, [n // 2 for n in range(18)] + [0, 0])
    assert [(e.columns, e.values, e.shared) for e in found.entities] == [(("product",), 2, 2)]
    assert keys({"product": ["p", "q"] * 10}, [n // 4 for n in range(20)]).entities == ()


def test_an_id_that_repeats_now_and_then_is_told_with_the_span_of_its_repeats() -> None:
    ids = [f"o{n}" for n in range(98)]
    found = keys({"order_id": [*ids, "o3", "o4"]}, [*range(98), 3, 90])
    assert found.repeats == Repeats("order_id", 2, 86)
    assert keys({"order_id": [*ids, "o3", "o4"]}).repeats == Repeats("order_id", 2, None)
    assert keys({"order_id": ids}).repeats is None
    assert keys({"name": [*ids, "o3", "o4"]}).repeats is None
    assert keys({"order_id": ["a", "b", "c", "a"]}).repeats is None


def test_a_column_of_any_name_that_repeats_with_the_whole_row_is_told() -> None:
    order = [f"o{n}" for n in range(98)]
    sku = [f"s{n % 7}" for n in range(98)]
    found = keys({"order": [*order, "o3", "o4"], "sku": [*sku, "s3", "s4"]}, [*range(98), 3, 4])
    assert found.repeats == Repeats("order", 2, 0)
    assert keys({"order": [*order, "o3", "o4"], "sku": [*sku, "s3", "s4"]}, [*range(98), 3, 90]).repeats is None
    assert keys({"order": [*order, "o3", "o4"], "sku": [*sku, "s3", "s5"]}, [*range(98), 3, 4]).repeats is None


def test_parquet_files_whose_types_differ_are_read_by_one() -> None:
    Path("x").mkdir()
    first = pa.table({
        "n": [1], "l": [[1]], "s": [{"a": 1}], "m": pa.array([[("k", 1)]], pa.map_("string", "int64")),
        "nothing": pa.nulls(1), "later": pa.nulls(1), "gaps": pa.array([[None]], pa.list_(pa.null())),
        "half": pa.array([1.5], pa.float16()), "at": pa.array([5], pa.timestamp("ns")),
        "times": pa.array([[5]], pa.list_(pa.timestamp("ns"))), "day": pa.array([5], pa.date32()),
    })  # fmt: skip
    second = pa.table({
        "n": [1.5], "l": [[1.5]], "s": [{"a": 1.5}], "m": pa.array([[("k", 1.5)]], pa.map_("string", "double")),
        "later": [7], "day": pa.array([5], pa.timestamp("ms")),
    })  # fmt: skip
    pq.write_table(first, "x/a.parquet")
    pq.write_table(second, "x/b.parquet")
    assert types("x") == {
        "n": "double", "l": "array<double>", "s": "struct<a:double>", "m": "map<string,double>", "nothing": "string",
        "later": "bigint", "gaps": "array<string>", "half": "float", "at": "timestamp", "times": "array<timestamp>",
        "day": "timestamp",
    }  # fmt: skip


def test_numbers_with_a_leading_zero_have_no_decimal_commas() -> None:
    Path("x.csv").write_text("a;b\n007;1,5\n012;2\n")
    assert [column.notes for column in look("x.csv").columns] == [
        (), ("decimal commas: cast(replace(b, ',', '.') as decimal(18, 4))",)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (["1.000,50", "7"], "decimal commas: cast(replace(replace(b, '.', ''), ',', '.') as decimal(18, 4))"),
        (["1,000.50", "7"], "commas between thousands: cast(replace(b, ',', '') as decimal(18, 4))"),
        (
            ["1,000", "7"],
            "commas between thousands: cast(replace(b, ',', '') as decimal(18, 4)) or "
            "decimal commas: cast(replace(b, ',', '.') as decimal(18, 4))",
        ),
        (["1,00,000", "7"], None),
        (["1,000.50", "1.000,50"], None),
    ],
)
def test_numbers_with_commas_have_the_expression_that_reads_them(texts: list[str], note: str | None) -> None:
    Path("x.csv").write_text("a;b\n" + "".join(f"{n};{text}\n" for n, text in enumerate(texts)))
    assert look("x.csv").columns[1].notes == (() if note is None else (note,))


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("2026-03-14 08:15:00", True), ("2026-03-14T08:15:00.5", True), ("2026-03-14 08:15:00 Europe/Berlin", False),
        ("2026-03-14 08:15:00 CET", False), ("2026-03-14T08:15:00Z", False), ("2026-03-14T08:15:00.250+0200", False),
        ("2026-03-14 08:15:00 -05", False),
    ],
)  # fmt: skip
def test_a_time_with_an_offset_or_a_zone_is_not_local(text: str, local: bool) -> None:
    Path("x.csv").write_text(f"k;x\na;{text}\n")
    found = look("x.csv").columns[1]
    assert (str(found.type), found.local) == ("timestamp", local)


def test_a_file_in_utf_16_is_converted_from_that() -> None:
    Path("x.csv").write_text("a;b\n1;2\n", "utf-16")
    with pytest.raises(InspectError) as error:
        look("x.csv")
    assert error.value.help == "convert it, as in `iconv -f utf-16 -t utf-8 IN > OUT`"


def test_numbers_far_too_large_for_times_are_silent(recwarn: pytest.WarningsRecorder) -> None:
    Path("x.json").write_text('{"d": 1.7976931348623157e308}\n')
    assert not look("x.json").clocks
    assert not recwarn.list


@pytest.mark.parametrize(
    ("text", "type", "option"),
    [
        ("03/14/2026 08:15 AM", "timestamp", ("timestampFormat", "MM/dd/yyyy hh:mm a")),
        ("14.03.2026 08:15:00.123", "timestamp", ("timestampFormat", "dd.MM.yyyy HH:mm:ss.SSS")),
        ("14-Mar-2026 08:15:00", "timestamp", ("timestampFormat", "dd-MMM-yyyy HH:mm:ss")),
        ("2026-03-14 08:15:00,123", "timestamp", ("timestampFormat", "yyyy-MM-dd HH:mm:ss,SSS")),
        ("20260314081500", "timestamp", ("timestampFormat", "yyyyMMddHHmmss")),
        ("20260314", "date", ("dateFormat", "yyyyMMdd")),
        ("14 Mar 2026", "date", ("dateFormat", "dd MMM yyyy")),
        ("20261314", "bigint", None),
        ("19260314", "bigint", None),
        ("14-Foo-2026", "string", None),
    ],
)
def test_times_in_other_forms_have_their_format(text: str, type: str, option: tuple[str, str] | None) -> None:
    Path("x.csv").write_text(f"k;x\na;{text}\nb;{text}\n")
    found = look("x.csv")
    assert {column.name: str(column.type) for column in found.columns} == {"k": "string", "x": type}
    assert [pair for pair in found.headers.options if pair[0] != "sep"] == ([option] if option else [])
