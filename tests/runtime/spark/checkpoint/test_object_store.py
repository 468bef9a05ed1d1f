"""Checkpoint, sources and sinks in an object store: the rows, what an epoch asks of it, and its end at any change."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.runtime.spark.support import compiled
from vsc.cli.store_key import read_key
from vsc.runtime.errors import SinkError
from vsc.runtime.spark.base.hadoop import Files
from vsc.runtime.spark.checkpoint.identity import REPLACED
from vsc.runtime.spark.checkpoint.replacing import finish
from vsc.runtime.spark.checkpoint.spark_logs import SparkLogs
from vsc.runtime.spark.query.failures import explained
from vsc.runtime.spark.upgrade import purge as purging
from vsc.runtime.spark.upgrade.purge import Purge

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from servers.s3 import ObjectStore, Request

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

TOPOLOGY = """
topology shop;
stream orders (id bigint, item string, pieces bigint, at bigint)
from files (path = '${lake}/in/orders', format = 'json', 'maxFilesPerTrigger' = '1') key id timestamp at;
table prices (item string, price bigint, at bigint)
from files (path = '${lake}/in/prices', format = 'json')
key item timestamp at materialize versioned (retention = 1 day);
stream priced = join orders with prices on item select id, item, pieces * price as cost;
table sums = aggregate priced group by item select count(*) as orders, sum(cost) as cost;
sink priced to files (path = '${lake}/priced', format = 'json');
sink sums to files (path = '${lake}/sums', format = 'json');
"""
PLAN = compiled(TOPOLOGY)
PRICES = {"a": 3, "b": 5}
EPOCHS, PARTITIONS = 3, 2
GONE = "Status Code: 403|the object store refuses"
ENDS = int(os.environ.get("VSC_STORE_ENDS", "1"))


@pytest.fixture(scope="module")
def store(spark: SparkSession) -> Iterator[ObjectStore]:
    from servers.s3 import ObjectStore

    store = ObjectStore()
    store.start()
    conf = spark._jsc.hadoopConfiguration()
    for name, value in store.settings.items():
        conf.set(name, value)
    yield store
    store.stop()


def filled(store: ObjectStore) -> str:
    """A new bucket with the input: an epoch for each file of orders."""
    bucket = store.new_bucket()

    def put(name: str, *rows: dict[str, Any]) -> None:
        store.client.put_object(Bucket=bucket, Key=f"in/{name}", Body="".join(json.dumps(r) + "\n" for r in rows))

    put("prices/0.json", *({"item": item, "price": price, "at": 0} for item, price in PRICES.items()))
    for n in range(EPOCHS):
        put(f"orders/{n}.json", *({"id": 10 * n + i, "item": "ab"[i], "pieces": 2, "at": 1} for i in (0, 1)))
    store.come_back()
    return bucket


def run(spark: SparkSession, bucket: str, **arguments: Any) -> None:
    from vsc.runtime.spark import start

    lake = f"s3a://{bucket}"
    start(
        PLAN, spark, checkpoint=f"{lake}/ck", variables={"lake": lake}, partitions=PARTITIONS, **arguments
    ).awaitTermination()


def rows(store: ObjectStore, bucket: str, sink: str) -> list[dict[str, Any]]:
    found = store.client.list_objects_v2(Bucket=bucket, Prefix=f"{sink}/part-").get("Contents", ())
    texts = (store.client.get_object(Bucket=bucket, Key=each["Key"])["Body"].read().decode() for each in found)
    return [json.loads(line) for text in texts for line in text.splitlines()]


def check_exact(store: ObjectStore, bucket: str) -> None:
    """Each row once: no price and no order is missing, and no sum has an order twice."""
    priced = sorted((row["id"], row["cost"]) for row in rows(store, bucket, "priced"))
    assert priced == [(10 * n + i, 2 * PRICES["ab"[i]]) for n in range(EPOCHS) for i in (0, 1)]
    sums = sorted((row["item"], row["orders"], row["cost"]) for row in rows(store, bucket, "sums"))
    assert sums == [(item, n, 2 * price * n) for item, price in PRICES.items() for n in range(1, EPOCHS + 1)]


@pytest.fixture(scope="module")
def whole(spark: SparkSession, store: ObjectStore) -> tuple[list[Request], list[int]]:
    """What a whole run has asked of the store, and how much of it by the end of each epoch."""
    bucket = filled(store)
    ends: list[int] = []
    run(spark, bucket, on_epoch=lambda _: ends.append(len(store.requests)))
    asked = list(store.requests)
    check_exact(store, bucket)
    assert len(ends) == EPOCHS
    return asked, ends


def test_nothing_of_a_checkpoint_is_copied(whole: tuple[list[Request], list[int]]) -> None:
    """A rename is a copy there: only what sinks stage is renamed."""
    asked, _ = whole
    assert {request.name.partition("/")[0] for request in asked if request.kind == "COPY"} == {"priced", "sums"}


def test_what_an_epoch_asks_of_the_store(whole: tuple[list[Request], list[int]]) -> None:
    """The bounds on the page about object stores, which has what Hadoop's client and Spark themselves ask."""
    asked, ends = whole
    for begin, end in pairwise(ends):
        names = [request.name for request in asked[begin:end]]
        states = sum(name.startswith("ck/state/") for name in names)
        assert states == 6 * PARTITIONS
        assert sum(name.startswith("ck/") for name in names) - states <= 60
        assert sum(name.startswith("priced/") for name in names) <= 60 + 13 * PARTITIONS


def test_a_run_is_exact_wherever_the_store_ends(
    spark: SparkSession, store: ObjectStore, whole: tuple[list[Request], list[int]]
) -> None:
    """What the store holds then is what a process that is killed there leaves: at any request, between copy and
    delete, too."""
    changes = sum(request.changes for request in whole[0])
    for end in range(ENDS):
        bucket = filled(store)
        store.go_after((2 * end + 1) * changes // (2 * ENDS))
        with pytest.raises(Exception, match=GONE):
            run(spark, bucket)
        assert store.gone
        store.come_back()
        run(spark, bucket)
        check_exact(store, bucket)


def test_a_snapshot_is_taken_whole_or_again(spark: SparkSession, store: ObjectStore) -> None:
    from vsc.runtime.spark.connectors.snapshot import take_once, write_rows

    def take(bucket: str, count: int, begun: bool = False) -> int:
        kept = f"s3a://{bucket}/kept"
        take_once(spark, "source `t`", kept, begun, lambda path: write_rows(spark.range(0, count, 1, 3), path))
        return spark.read.parquet(kept).count()

    bucket = store.new_bucket()
    assert take(bucket, 30) == 30
    changes = sum(request.changes for request in store.requests)
    assert take(bucket, 10) == 30
    assert take(bucket, 10, begun=True) == 30
    found = []
    for left in (1, 3, changes // 2, changes - 1):
        bucket = store.new_bucket()
        store.go_after(changes - left)
        with pytest.raises(Exception, match=GONE):
            take(bucket, 30)
        store.come_back()
        found.append(take(bucket, 10))
    assert found == [30, 10, 10, 10]  # the last change is behind the mark


def test_a_file_that_cannot_be_written_stays_as_it_was(spark: SparkSession, store: ObjectStore) -> None:
    files = Files(spark, f"s3a://{store.new_bucket()}/ck")
    files.write("a", "1")
    with pytest.raises(UnicodeEncodeError):
        files.write("a", "\ud83d")
    assert files.read("a") == "1"


@pytest.mark.parametrize("name", ["ck/state", "ck/offsets"])
def test_a_refusal_is_told_as_one(spark: SparkSession, store: ObjectStore, name: str) -> None:
    bucket = filled(store)
    store.refuse(lambda request: request.changes and request.name.startswith(name))
    with pytest.raises(Exception, match=GONE) as raised:
        run(spark, bucket)
    error = explained(raised.value, SparkLogs(Files(spark, f"s3a://{bucket}/ck")))
    assert isinstance(error, SinkError)
    assert error.message.startswith(f"the object store refuses, or does not answer: {name}")
    assert "the store is gone" in error.message


def test_a_purge_that_the_store_has_cut_short_is_finished(
    spark: SparkSession, store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = filled(store)
    run(spark, bucket)
    lake = f"s3a://{bucket}"
    job = Purge(f"{lake}/ck", ("prices",), ("b",), read_key, {"lake": lake})
    with monkeypatch.context() as patch:
        patch.setattr(purging, "finish", lambda files, check: None)
        purging.purge(job, spark, lambda text: None)
    files = Files(spark, f"{lake}/ck")
    cuts = 0
    for changes in (3, 25, 50):  # while the old checkpoint is removed, while the new one is moved
        store.go_after(changes)
        try:
            finish(files, lambda: None)
        except Exception as error:
            assert re.search(GONE, str(error))
            cuts += 1
        store.come_back()
    assert cuts > 1
    said: list[str] = []
    if files.exists(REPLACED):
        purging.purge(job, spark, said.append)
    store.client.put_object(
        Bucket=bucket, Key="in/orders/9.json", Body='{"id": 90, "item": "a", "pieces": 1, "at": 2}\n'
        '{"id": 91, "item": "b", "pieces": 1, "at": 2}\n'
    )  # fmt: skip
    run(spark, bucket)
    assert len(rows(store, bucket, "priced")) == 2 * EPOCHS + 1  # no price is known for b
    assert max(row["orders"] for row in rows(store, bucket, "sums") if row["item"] == "a") == EPOCHS + 1
