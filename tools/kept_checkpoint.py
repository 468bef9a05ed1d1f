"""A small checkpoint with a bit of each kind of state, to be kept as data: ``python -m tools.kept_checkpoint``.

It is that of half a run: rows wait for another source, for their grace, in a `suppress` and in open windows. Run it
with the last release (or commit) that writes a format, on the oldest Spark that is supported, before the format
changes; it writes ``format-N.tar.gz`` beside this file.
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.runtime.spark.support import compiled, run_once, write_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FILES", "TOPOLOGY", "VERSIONS", "feed", "half_run"]

TOPOLOGY = """
stream orders (id bigint, currency string, amount bigint, at bigint)
from files (path = '${in}/orders', format = 'json', 'maxFilesPerTrigger' = '1') key id timestamp at;
table rates (currency string, rate bigint, at bigint)
from files (path = '${in}/rates', format = 'json', 'maxFilesPerTrigger' = '1')
key currency timestamp at materialize versioned (retention = 1 hour);
table limits (currency string, most bigint, at bigint)
from files (path = '${in}/limits', format = 'json', 'maxFilesPerTrigger' = '1')
key currency timestamp at materialize unversioned;
stream priced = left join orders with rates on currency grace 15 ms select id, currency, amount, rate;
stream once = distinct orders by currency, amount within 1 hour;
table totals = aggregate orders group by currency window tumbling (size = 40 ms, grace = 20 ms)
select count(*) as n, sum(amount) as total;
table closed = suppress totals until window closes;
table visits = aggregate orders group by currency window session (gap = 10 ms) select count(*) as n;
table highest = aggregate limits group by most select count(*) as n, collect_set(currency) as currencies;
table limited = join limits with highest on most select limits.most as most, highest.n as n;
sink priced to files (path = '${out}/priced', format = 'parquet');
sink closed to files (path = '${out}/closed', format = 'parquet');
sink once to files (path = '${out}/once', format = 'parquet');
sink visits to noop ();
sink limited to noop ();
"""
FILES = 4
PARTITIONS = 2
EPOCH = 1
"""The epoch after which the kept query stopped: its files 0 and 1 were read."""
CHECKPOINTS = Path(__file__).parents[1] / "tests/runtime/spark/checkpoints"
VERSIONS = sorted(int(file.name[7:-7]) for file in CHECKPOINTS.glob("format-*.tar.gz"))


def feed(folder: Path, numbers: range) -> None:
    """Orders are read ahead of the rates, which overlap in time: rows wait, and some are late."""
    for i in numbers:
        orders = [
            {"id": 100 * i + n, "currency": "abc"[n % 3], "amount": n % 5, "at": 60 * i + 7 * n} for n in range(12)
        ]
        write_json(folder / f"in/orders/{i}.json", orders, i)
        rates = [{"currency": c, "rate": 10 * i + k, "at": 40 * i + 9 * k} for k, c in enumerate("abc")]
        write_json(folder / f"in/rates/{i}.json", rates, i)
        limits = [{"currency": c, "most": 10 * (i % 3 + k % 2), "at": 40 * i + k} for k, c in enumerate("abcd")]
        write_json(folder / f"in/limits/{i}.json", limits, i)


def half_run(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """The checkpoint ``folder/ck`` of a query that has read half of its input; the variables of its topology."""
    from vsc.runtime.spark.base.options import resolve_plan
    from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
    from vsc.runtime.spark.connectors.registry import Ends

    feed(folder, range(FILES))
    plan, variables = compiled(TOPOLOGY), {"in": str(folder / "in"), "out": str(folder / "out")}
    run_once(plan, spark, folder / "ck", variables=variables, partitions=PARTITIONS)
    opened = Checkpoint.open(spark, str(folder / "ck"), plan, None)
    ends = Ends(resolve_plan(plan, variables))
    ends.begin(spark, opened.id)
    opened.go_back(ends.writers, EPOCH)
    return variables


def main() -> int:
    """Writes the archive."""
    from pyspark.sql import SparkSession

    folder = Path(tempfile.gettempdir()) / "vsc-kept"
    shutil.rmtree(folder, ignore_errors=True)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    half_run(spark, folder)
    spark.stop()
    number = json.loads((folder / "ck/vsc/identity.json").read_text())["format"]
    archive = CHECKPOINTS / f"format-{number}.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=9) as packed:
        packed.add(folder / "ck", "ck", filter=_anonymous)
    print(f"{archive}: {archive.stat().st_size:,} bytes")
    return 0


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return None if info.name.endswith((".crc", "claim.lock")) else info


if __name__ == "__main__":
    sys.exit(main())
