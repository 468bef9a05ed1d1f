"""What `start` and `read_store` say about arguments of a wrong type. No Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.spark.support import compiled
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.views.catalog import find_store
from vsc.runtime.operators.views.question import question
from vsc.runtime.spark import start
from vsc.runtime.spark.base.job import Run, as_text

PLAN = compiled(
    "table t (k string, n int) from memory () key k materialize versioned (retention = 1 day); sink t to noop ();"
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checkpoint": 5}, "`checkpoint` is a text, not 5"),
        ({"partitions": "4"}, "`partitions` is a whole number, not '4'"),
        ({"partitions": True}, "`partitions` is a whole number, not True"),
        ({"back_to": 1.0}, "`back_to` is a whole number, not 1.0"),
        ({"trigger": 10}, "`trigger` is a text, not 10"),
        ({"max_idle": 10}, "`max_idle` is a text, not 10"),
        ({"variables": ["a=b"]}, r"`variables` are a mapping of names to texts, not \['a=b'\]"),
        ({"variables": {"n": 1}}, "the value of a variable is a text: 'n' has 1"),
        ({"on_error": "ignore"}, "`on_error` is 'drop' or 'fail', not 'ignore'"),
        ({"on_bad_row": None}, "`on_bad_row` is 'drop' or 'fail', not None"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_made(arguments: dict[str, Any], message: str) -> None:
    session: Any = None
    with pytest.raises(ConfigurationError, match=message):
        start(PLAN, session, **{"checkpoint": "ck", **arguments})


def test_a_plan_is_no_text() -> None:
    plan: Any = "topology.vdsl"
    with pytest.raises(ConfigurationError, match="`plan` is what `compile_topology` gives, not 'topology"):
        Run(plan, "ck", options=RunOptions())


def test_a_path_is_as_good_as_its_text() -> None:
    assert (as_text(Path("a") / "b"), as_text("s3a://a/b")) == ("a/b", "s3a://a/b")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": "EUR"}, r"a key of 't' is a dict of its columns, not 'EUR'\n  help: its key is k string"),
        ({"as_of": "noon"}, "`as_of` is a time in ms, not 'noon'"),
        ({"history": True, "start": 1.5}, "`from_ts` is a time in ms, not 1.5"),
    ],
)
def test_a_question_in_wrong_types(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        question(find_store(PLAN, "t"), **arguments)
