"""Wherever an expression stands, what it raises costs its record only, or names node, text and record."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from vsc.runtime.errors import ExpressionError
from vsc.runtime.expressions.forms import Form
from vsc.runtime.expressions.functions import FUNCTIONS
from vsc.testing import TopologyTestDriver

SOURCE = "(id int, x string, at bigint) from memory () key id timestamp"
PLACES = {
    "timestamp": ("s", f"stream s {SOURCE} cast(length(upper(x)) as bigint);"),
    "delete when": ("s", f"table s {SOURCE} at delete when upper(x) = 'GONE';"),
    "filter": ("o", f"stream s {SOURCE} at; stream o = filter s where upper(x) <> '';"),
    "map": ("o", f"stream s {SOURCE} at; stream o = map s select upper(x) as y;"),
    "rekey": ("o", f"stream s {SOURCE} at; stream o = rekey s by upper(x) as y;"),
    "explode": ("o", f"stream s {SOURCE} at; stream o = explode s by array(upper(x)) as y;"),
    "distinct": ("o", f"stream s {SOURCE} at; stream o = distinct s by upper(x) within 1 hour;"),
    "group by": ("o", f"stream s {SOURCE} at; table o = aggregate s group by upper(x) as y select count(*) as n;"),
    "aggregate": ("o", f"stream s {SOURCE} at; table o = aggregate s group by id select max(upper(x)) as y;"),
    "result": ("o", f"stream s {SOURCE} at; table o = aggregate s group by id select upper(max(x)) as y;"),
}


@pytest.mark.parametrize("raised", [RuntimeError("of ours"), OverflowError(), RecursionError(), MemoryError()])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_raised_is_the_failure_of_a_record(
    place: str, raised: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FUNCTIONS, "upper", Form(lambda call: _raising(raised)))
    node, text = PLACES[place]
    text += f" sink {node} to memory ();"
    rows = [{"id": number, "x": x, "at": 1} for number, x in enumerate(("a", "bad", "c"))]
    with TopologyTestDriver(text, on_error="drop") as driver:
        for row in rows:
            driver.pipe("s", row)
        assert len(driver.read(node)) == 2
        assert driver.metrics()["dropped_records"] == {node: {"expression_failed": 1}}
    with TopologyTestDriver(text) as driver:
        driver.pipe("s", rows[0])
        said = rf"'{node}': .*upper\(.* failed on record 1 of its only partition of source 's': \[[A-Z_]+\] "
        with pytest.raises(ExpressionError, match=said) as error:
            driver.pipe("s", rows[1])
        assert re.search(r"Error|memory|deeply", error.value.message)


def _raising(raised: Exception) -> Callable[[str], str]:
    def upper(value: str) -> str:
        if value == "bad":
            raise raised
        return value.upper()

    return upper
