"""Which files of a folder are read, and in which order: that of their paths, however they are cut into epochs; each
file once, whatever links lead to it; none is left out for its name."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled
from vsc.runtime.errors import SourceError
from vsc.runtime.spark import start
from vsc.runtime.spark.query.running_query import QueryFailedError

pytestmark = pytest.mark.spark

NAMES = ["2026-05/a.json", "2026-05/09:30 b.json", "2026/z.json", "2026.json", "Köln/ü.json", "\U0001f600/x.json",
         "\ufb01.json", "day=1/p.json"]  # fmt: skip


def folder(root: Path) -> Path:
    for number, name in enumerate(NAMES):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"id": number}))
        os.utime(path, (1767600000, 1767600000))
    return root


def run(spark: Any, path: Path, where: str, most: int) -> list[str]:
    plan = compiled(f"""
    stream s (id int) from files (path = '${{in}}', format = 'json', 'maxFilesPerTrigger' = '{most}') key id;
    sink s to files (path = '${{out}}', format = 'json');
    """)
    variables = {"in": where, "out": str(path / f"out{most}")}
    start(plan, spark, checkpoint=path / f"ck{most}", variables=variables, partitions=1).awaitTermination()
    files = sorted((path / f"out{most}").glob("part-*"))
    return [NAMES[json.loads(line)["id"]] for file in files for line in file.read_text().splitlines()]


def test_files_of_one_moment_come_by_path_and_links_lead_to_nothing_new(spark: Any, tmp_path: Path) -> None:
    root = folder(tmp_path / "in")
    (root / "latest").symlink_to("2026-05")
    (root / "2026-05/first.json").symlink_to("a.json")
    (root / "self").symlink_to(".")
    (root / "2026/up").symlink_to("..")  # two loops: more paths than anybody can list
    (root / "gone").symlink_to("nowhere")
    assert run(spark, tmp_path, str(root), 3) == run(spark, tmp_path, str(root), 100) == sorted(NAMES)


def test_what_is_only_behind_a_link_is_read_once(spark: Any, tmp_path: Path) -> None:
    folder(tmp_path / "elsewhere")
    (tmp_path / "in").mkdir()
    for name in ("b", "a"):
        (tmp_path / "in" / name).symlink_to(tmp_path / "elsewhere")
    assert run(spark, tmp_path, f"{tmp_path}/in/*", 100) == sorted(NAMES)


@pytest.mark.skipif(os.geteuid() == 0, reason="the root user may read everything")
def test_a_folder_that_may_not_be_read_is_not_left_out(spark: Any, tmp_path: Path) -> None:
    root = folder(tmp_path / "in")
    (root / "Köln").chmod(0)
    with pytest.raises(QueryFailedError):
        run(spark, tmp_path, str(root), 100)


@pytest.mark.parametrize("path", ["in", "in/*.json"])
def test_a_file_whose_name_is_not_utf8_stops_the_run(spark: Any, tmp_path: Path, path: str) -> None:
    root = folder(tmp_path / "in")
    (root / os.fsdecode(b"_hidden \xfc.json")).write_text("")
    (root / os.fsdecode(b"B\xfccher.json")).write_text("{}")
    with pytest.raises(QueryFailedError) as caught:
        run(spark, tmp_path, str(tmp_path / path), 100)
    assert isinstance(caught.value.error, SourceError)
    assert caught.value.error.message == rf"Spark cannot read {root}/B\xfccher.json: its name is not UTF-8"
