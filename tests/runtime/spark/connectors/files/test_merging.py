"""Small files of a sink are merged on Spark: every row once, in order, in each format, in folders."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled, write_json
from vsc.plan import Connector
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.base.options import Options
from vsc.runtime.spark.connectors.files.epoch_files import EpochFiles
from vsc.runtime.spark.connectors.files.rewriting import Rewriting
from vsc.runtime.spark.connectors.files.small_files import PublishedFile
from vsc.runtime.spark.query.failures import translated

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEPT = "spark.sql.streaming.minBatchesToRetain"
EPOCHS = 24
TEXTS = ("plain", 'quo"te, comma', "two\nlines", "carriage\rreturn", "", None, "ä€😀")
SOURCE = """
stream s (id bigint, e bigint, k int, text string, n decimal(12,2), at timestamp, d date)
from files (path = '${in}', format = 'json', 'maxFilesPerTrigger' = '1') timestamp e;
"""
FORMS = {
    "json": "'compression' = 'gzip'", "csv": "'escape' = '\"'", "parquet": "'compression' = 'zstd'",
    "orc": "partition_by = (k)", "json in folders": "partition_by = (k)",
}  # fmt: skip


def sink(form: str, extra: str, more: str = "target_size = '1 MB'") -> str:
    return f"sink s to files (path = '${{out}}/{form}', format = '{form.split()[0]}', {extra}, {more});\n"


def row(number: int) -> dict[str, Any]:
    at = "1890-01-01T00:00:00.000001Z" if number == 3 else f"2026-05-04T10:{number % 60:02}:00.123456Z"
    text = TEXTS[number % len(TEXTS)]
    return {"id": number, "e": number, "k": number % 2, "text": text, "n": f"{number}.25", "at": at, "d": "2026-05-04"}


def files(folder: Path) -> list[Path]:
    found = [p for p in folder.rglob("part-*") if not any(one.startswith("_") for one in p.relative_to(folder).parts)]
    return sorted(found, key=lambda path: path.name)


def ids(path: Path) -> list[int]:
    """The rows of a file of text, in order."""
    if "json" in path.suffixes[0]:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return [json.loads(line)["id"] for line in raw.decode().split("\n") if line]
    with path.open(newline="") as text:
        return [int(one["id"]) for one in csv.DictReader(text)]


@pytest.fixture
def few_kept(spark: Any) -> Any:
    before = spark.conf.get(KEPT)
    spark.conf.set(KEPT, "2")
    yield
    spark.conf.set(KEPT, before)


def run(spark: Any, tmp_path: Path, text: str, checkpoint: str = "ck", **more: Any) -> None:
    from vsc.runtime.spark import start

    variables = {"in": str(tmp_path / "in"), "out": str(tmp_path / "out")}
    start(compiled(text), spark, checkpoint=str(tmp_path / checkpoint), variables=variables, partitions=1,
          **more).awaitTermination()  # fmt: skip


def test_rows_stay_once_and_in_order_in_every_format(
    spark: Any, tmp_path: Path, few_kept: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(EPOCHS):
        write_json(tmp_path / f"in/{number:03}.json", [row(5 * number + i) for i in range(5)], number)
    small = sink("json small", FORMS["json in folders"], "append = false")
    run(spark, tmp_path, SOURCE + small + "".join(sink(form, extra) for form, extra in FORMS.items()))
    assert "merges no more" not in caplog.text
    assert len(files(tmp_path / "out/json small")) == EPOCHS * 2  # without a size, none is merged; two folders
    whole = "".join(sink(f"{form} whole", extra, "append = false") for form, extra in FORMS.items())
    run(spark, tmp_path, SOURCE.replace("'1'", f"'{EPOCHS}'") + whole, "whole")
    for form in FORMS:
        merged = files(tmp_path / "out" / form)
        assert len(merged) < EPOCHS * (2 if "partition_by" in FORMS[form] else 1) / 2
        assert not list((tmp_path / "out" / form).glob("_vsc-*/merge*"))
        reader = spark.read.format(form.split()[0]).option("header", "true").option("escape", '"')
        reader = reader.option("multiLine", "true" if form == "csv" else "false")
        rows = [
            sorted(map(repr, reader.load(str(tmp_path / "out" / name)).collect())) for name in (form, f"{form} whole")
        ]
        assert rows[0] == rows[1]
        assert len(rows[0]) == 5 * EPOCHS
        if form in ("json", "csv"):
            assert [one for path in merged for one in ids(path)] == list(range(5 * EPOCHS))


ONE = SOURCE + sink("json", "'ignoreNullFields' = 'false'")
COPY = """
stream s (id bigint, e bigint) from files (path = '${out}/json', format = 'json') timestamp e;
sink s to files (path = '${out}/copy', format = 'json');
"""


def test_a_run_killed_on_the_way_and_what_can_no_longer_be_done(
    spark: Any, tmp_path: Path, few_kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies between the list of a merge and its end; later runs go on, and back where that is possible. A
    source of vsc that reads the folder refuses the merged file."""
    for number in range(EPOCHS):
        write_json(tmp_path / f"in/{number:03}.json", [row(number)], number)

    def killed(files: EpochFiles) -> None:
        raise RuntimeError("the plug was pulled")

    with monkeypatch.context() as patch:
        patch.setattr(EpochFiles, "finish_merge", killed)
        with pytest.raises(Exception, match="the plug was pulled"):
            run(spark, tmp_path, ONE)
    out = tmp_path / "out/json"
    assert list(out.glob("_vsc-*/merge._commit"))
    assert [ids(path) for path in files(out)] == [[number] for number in range(21)]
    for back_to in (None, EPOCHS - 2):
        run(spark, tmp_path, ONE, back_to=back_to)
        assert [ids(path) for path in files(out)] == [list(range(18)), *([number] for number in range(18, EPOCHS))]

    merged = files(out)[0].name
    with pytest.raises(SinkError, match=r"holds rows up to epoch 17, so nothing can go back to epoch 5"):
        EpochFiles(Files(spark, str(out)), merged[5:21], "0", "the sink").check_back_to(5)
    with pytest.raises(Exception) as error:  # Spark's exception, of whatever kind, quotes ours
        run(spark, tmp_path, COPY, checkpoint="copy")
    known = translated(error.value)
    assert known is not None
    assert f"source 's' (line 2): {merged} holds the rows of other files" in known.message
    assert not files(tmp_path / "out/copy")


def test_a_first_line_that_is_a_row_is_no_header(spark: Any, tmp_path: Path) -> None:
    """Files of a time when the sink wrote no header, or ended its lines in another way, are not merged."""
    found = []
    for number, text in enumerate(
        ["id,n\n7,0\n", "id,n\n7,1\n", "1,2\n7,2\n", "1,2\n7,3\n", "1,2\n7,4\n", "id,n|1,2|"]
    ):
        name = f"part-abcd-0-{number:010}-00000.csv"
        (tmp_path / name).write_text(text)
        found.append(PublishedFile.of(name, "part-abcd-0-"))
    run_of = [file for file in found if file is not None]
    assert len(run_of) == 6
    (tmp_path / "newest.csv").write_text("id,n\n8,8\n")
    options = Options("the sink", Connector("files", (("path", str(tmp_path)), ("format", "csv")), ()))
    rewriting, newest = Rewriting(spark, options), str(tmp_path / "newest.csv")
    assert [file.first[0] for file in rewriting.alike(run_of, str(tmp_path), newest)] == [0, 1]
    assert rewriting.alike(run_of[2:], str(tmp_path), newest) == []
