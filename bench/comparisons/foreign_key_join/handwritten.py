"""The same join as a user would write it by hand: two chained ``transformWithState``.

The first, by order, knows to which product the order belonged, and tells that product when the order leaves. The
second, by product, keeps the product's orders and its price. It handles no deletions, and leaves the results of one
order that come from two products unordered: vsc orders them in a third step.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row, functions
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from bench.measuring import Measured, measure_frame, session, stream
from bench.workload import Workload

__all__ = ["measure"]

_MOVES = "product string, id string, quantity bigint, at bigint, price double"
_OUTPUT = "id string, quantity bigint, price double, total double"


class Moves(StatefulProcessor):
    """Keeps the product of an order."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._product = handle.getValueState("product", "product string")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """Sends a change without a quantity to tell a product that the order has left it."""
        found = self._product.get()
        before = product = None if found is None else found[0]
        for row in sorted(rows, key=lambda row: row.at):
            if product is not None and product != row.product:
                yield Row(product=product, id=key[0], quantity=None, at=row.at, price=None)
            product = row.product
            yield Row(product=product, id=key[0], quantity=row.quantity, at=row.at, price=None)
        if product != before:
            self._product.update((product,))

    def close(self) -> None:
        """Nothing to close."""


class Priced(StatefulProcessor):
    """Keeps the price of a product and the orders that belong to it."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._price = handle.getValueState("price", "price double")
        self._orders = handle.getMapState("orders", "id string", "quantity bigint")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:
        """Reads the orders and the price once, and writes what has changed once."""
        found = self._price.get()
        before = price = None if found is None else found[0]
        orders = {order[0]: quantity[0] for order, quantity in self._orders.iterator()}
        touched = set()
        for row in sorted(rows, key=lambda row: row.at):
            if row.price is not None:
                price = row.price
                for order, quantity in orders.items():
                    yield Row(id=order, quantity=quantity, price=price, total=quantity * price)
                continue
            touched.add(row.id)
            if row.quantity is None:
                orders.pop(row.id, None)
                continue
            orders[row.id] = row.quantity
            if price is not None:
                yield Row(id=row.id, quantity=row.quantity, price=price, total=row.quantity * price)
        for order in touched:
            if order in orders:
                self._orders.updateValue((order,), (orders[order],))
            elif self._orders.containsKey((order,)):
                self._orders.removeKey((order,))
        if price != before:
            self._price.update((price,))

    def close(self) -> None:
        """Nothing to close."""


def measure(folder: Path, workload: Workload) -> Measured:
    """Rows of both tables a second over the measured batches."""
    spark = session("hand-written")
    orders = stream(spark, folder / "orders", "id string, product string, quantity bigint, at timestamp")
    products = stream(spark, folder / "products", "product string, price double, at timestamp")
    at = functions.unix_micros("at").alias("at")
    moves = orders.select("id", "product", "quantity", at).groupBy("id")
    moved = moves.transformWithState(Moves(), _MOVES, "Append", "None")
    prices = products.select(
        "product", functions.lit(None).cast("string").alias("id"), functions.lit(None).cast("bigint").alias("quantity"),
        at, "price",
    )  # fmt: skip
    grouped = moved.unionByName(prices).groupBy("product")
    joined = grouped.transformWithState(Priced(), _OUTPUT, "Append", "None")
    return measure_frame(joined, folder / "handwritten-checkpoint", workload)
