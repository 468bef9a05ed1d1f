"""A small checkpoint with a bit of each kind of state, to be kept as data: ``python -m tools.kept_checkpoint``.

It is that of half a run: rows wait for another source, for their grace, in a `suppress` and in open windows. Run it on
the oldest Spark that is supported:

* before a release, which is the version in `vsc`: it writes ``release-VERSION.tar.gz``, with the topology and with what
  the half run has written;
* with an argument, ``python -m tools.kept_checkpoint format``, with the last commit that writes a format, before the
  format changes: it writes ``format-N.tar.gz``.
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
from vsc import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CHECKPOINTS", "FILES", "RELEASES", "TOPOLOGY", "VERSIONS", "feed", "half_run"]

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
MORE = """
stream by_currency = rekey orders by currency;
stream small = filter by_currency where amount < 2;
stream large = filter by_currency where amount > 2;
stream met = outer join small with large within 20 ms grace 5 ms select small.id as small, large.id as large;
stream before = left join by_currency as l with by_currency as r within (before = 60 ms) grace 10 ms
select l.id, count(r.id) as n, sum(r.amount) over 30 ms as total;
table corrected = left join orders with rates on currency correct by id within 30 ms select amount, rates.rate as rate;
stream ordered = reorder orders within 20 ms;
table newest = aggregate ordered group by currency select last(id) as id, sum(amount) as total;
table present = to_table by_currency materialize unversioned (expire = 100 ms);
sink met to files (path = '${out}/met', format = 'parquet');
sink before to files (path = '${out}/before', format = 'parquet');
sink corrected to files (path = '${out}/corrected', format = 'parquet');
sink newest to files (path = '${out}/newest', format = 'parquet');
sink present to files (path = '${out}/present', format = 'parquet');
"""
"""What a release's checkpoint has beside `TOPOLOGY`. Each keeps the text that it was made with, so this may grow."""
FILES = 4
PARTITIONS = 2
EPOCH = 1
"""The epoch after which the kept query stopped: its files 0 and 1 were read."""
CHECKPOINTS = Path(__file__).parents[1] / "tests/runtime/spark/checkpoints"
VERSIONS = sorted(int(file.name[7:-7]) for file in CHECKPOINTS.glob("format-*.tar.gz"))
RELEASES = sorted(file.name[8:-7] for file in CHECKPOINTS.glob("release-*.tar.gz"))


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


def half_run(spark: SparkSession, folder: Path, topology: str = TOPOLOGY) -> dict[str, Any]:
    """The checkpoint ``folder/ck`` of a query that has read half of its input; the variables of its topology."""
    from vsc.runtime.spark.base.options import resolve_plan
    from vsc.runtime.spark.checkpoint.checkpoint import Checkpoint
    from vsc.runtime.spark.connectors.registry import Ends

    feed(folder, range(FILES))
    plan, variables = compiled(topology), {"in": str(folder / "in"), "out": str(folder / "out")}
    run_once(plan, spark, folder / "ck", variables=variables, partitions=PARTITIONS)
    opened = Checkpoint.open(spark, str(folder / "ck"), plan, None)
    ends = Ends(resolve_plan(plan, variables))
    ends.begin(spark, opened.id)
    opened.go_back(ends.writers, EPOCH)
    return variables


def main(arguments: list[str]) -> int:
    """Writes the archive."""
    from pyspark.sql import SparkSession

    topology = TOPOLOGY if arguments else TOPOLOGY + MORE
    folder = Path(tempfile.gettempdir()) / "vsc-kept"
    shutil.rmtree(folder, ignore_errors=True)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    half_run(spark, folder, topology)
    spark.stop()
    number = json.loads((folder / "ck/vsc/identity.json").read_text())["format"]
    (folder / "topology.vdsl").write_text(topology)
    archive = CHECKPOINTS / (f"format-{number}.tar.gz" if arguments else f"release-{__version__}.tar.gz")
    with tarfile.open(archive, "w:gz", compresslevel=9) as packed:
        for name in ["ck"] if arguments else ["ck", "out", "topology.vdsl"]:
            packed.add(folder / name, name, filter=_anonymous)
    print(f"{archive}: format {number}, Spark {spark.version}, {archive.stat().st_size:,} bytes")
    return 0


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return None if info.name.endswith((".crc", "claim.lock")) else info


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
