"""``vsc run`` on a machine in Berlin, with a session in Tokyo: all is UTC, in every format."""

from __future__ import annotations

import csv
import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

TOPOLOGY = """
stream a (id int, at timestamp) from files (path = 'in/a.json', format = 'json') timestamp at;
stream b (id int, at timestamp) from files (path = 'in/b.csv', format = 'csv') timestamp at;
stream c (id int, at timestamp) from files (path = 'in/c.parquet', format = 'parquet') timestamp at;
stream d (id int, at timestamp) from files (path = 'in/d.orc', format = 'orc') timestamp at;
stream e (id int, at timestamp)
from files (path = 'in/a.json', format = 'json', time_zone = 'Europe/Berlin') timestamp at;
stream all_of_them = merge a, b, c, d, e;
sink all_of_them to files (path = 'out/json', format = 'json', with_timestamp = true);
sink all_of_them to files (path = 'out/csv', format = 'csv', with_timestamp = true);
sink all_of_them to files (path = 'out/orc', format = 'orc', with_timestamp = true);
sink e to console ();
"""
SUMMER, WINTER, FAR = "2024-07-01 12:00:00", "2024-01-01 12:00:00", "9999-12-31 00:00:00"
TIMES = [dt.datetime.fromisoformat(text) for text in (SUMMER, WINTER, FAR)]


def test_all_is_utc_on_a_machine_that_is_not(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (tmp_path / "t.vdsl").write_text(TOPOLOGY)
    rows = [{"id": i, "at": at} for i, at in enumerate((SUMMER, WINTER, FAR))]
    (source / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (source / "b.csv").write_text("id,at\n" + "".join(f"{row['id']},{row['at']}\n" for row in rows))
    ids = pa.array([0, 1, 2], pa.int32())
    pq.write_table(
        pa.table({"id": ids[:2], "at": pa.array(TIMES[:2], pa.timestamp("us"))}),
        source / "c.parquet", use_deprecated_int96_timestamps=True,
    )  # fmt: skip
    orc.write_table(pa.table({"id": ids, "at": pa.array(TIMES, pa.timestamp("us"))}), source / "d.orc")
    command = [sys.executable, "-m", "vsc", "run", "t.vdsl", "--master", "local[2]", "--checkpoint", "ck"]
    command += ["--partitions", "1"]
    command += ["--conf", "spark.sql.session.timeZone=Asia/Tokyo", "--progress", "lines"]
    env = {**os.environ, "TZ": "Europe/Berlin", "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "--conf spark.sql.session.timeZone=Asia/Tokyo has no effect: vsc sets it to UTC" in done.stderr

    summer, winter = ("2024-07-01T12:00:00.000Z", 1_719_835_200_000), ("2024-01-01T12:00:00.000Z", 1_704_110_400_000)
    local = [("2024-01-01T11:00:00.000Z", 1_704_106_800_000), ("2024-07-01T10:00:00.000Z", 1_719_828_000_000)]
    wanted = sorted([summer, winter] * 4 + local)
    written = [json.loads(line) for file in (tmp_path / "out/json").glob("part-*") for line in file.open()]
    assert sorted((row["at"], row["_timestamp"]) for row in written) == wanted
    cells = [row for file in (tmp_path / "out/csv").glob("part-*") for row in csv.DictReader(file.open())]
    assert sorted((row["at"], int(row["_timestamp"])) for row in cells) == wanted
    kept = [row for file in (tmp_path / "out/orc").glob("part-*") for row in orc.read_table(file).to_pylist()]
    assert sorted((f"{row['at']:%Y-%m-%dT%H:%M:%S}.000Z", row["_timestamp"]) for row in kept) == wanted
    assert "2024-07-01 10:00:00" in done.stdout and "2024-01-01 11:00:00" in done.stdout
    for name in "abde":
        assert f"warning[VSC909]: source '{name}': row 3 of file:" in done.stderr
        assert f"1 in_the_future in '{name}'" in done.stderr
    assert "the event time 9999-12-31 00:00:00.000, later than 20" in done.stderr
