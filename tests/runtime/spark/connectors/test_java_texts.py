"""Java judges the texts that `vsc check` refuses without it: what Java takes is never refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from string import ascii_letters
from typing import Any

import pytest
from pyspark.sql import SparkSession

from vsc.plan.connectors.facts import Wrong
from vsc.plan.connectors.java_texts import wrong_glob, wrong_regex, wrong_time_pattern
from vsc.runtime.spark.base.java import compiled_java, java_class

pytestmark = [pytest.mark.spark, pytest.mark.release]

REGEX = (
    *"()[]{}*+?|^$\\.,-&:=!<>ixdQE12a",
    "(?:",
    "(?i)",
    "(?<n>",
    "(?<=",
    "\\d",
    "[a-z]",
    "{2,3}",
    "\\p{L}",
    "\\x{41}",
)
GLOB = (*"[]{}\\*?,!^-ab",)
PATTERN = (*"yMdHsSTYE'[]{}#-: .", "yyyy", "MM", "'T'", "''")
JUDGE = """
import org.apache.spark.sql.catalyst.util.Iso8601TimestampFormatter;
import org.apache.spark.sql.catalyst.util.LegacyDateFormats$;

public class Judge {
    public static String taken(String kind, String texts) {
        StringBuilder found = new StringBuilder();
        String[] all = texts.split("\\n", -1);
        for (int i = 0; i < all.length; i++) {
            try {
                if (kind.equals("regex")) {
                    java.util.regex.Pattern.compile(all[i]);
                } else if (kind.equals("glob")) {
                    new org.apache.hadoop.fs.GlobFilter(all[i]);
                } else {
                    new Iso8601TimestampFormatter(
                        all[i], java.time.ZoneOffset.UTC, java.util.Locale.US,
                        LegacyDateFormats$.MODULE$.FAST_DATE_FORMAT(), kind.equals("read")
                    ).validatePatternString(false);
                }
                found.append('y');
            } catch (Throwable e) {
                found.append('n');
            }
        }
        return found.toString();
    }
}
"""
"""Asked once for all texts: an exception that reaches Python takes long."""


def test_a_regular_expression_that_java_takes_is_not_refused(spark: SparkSession) -> None:
    texts = _texts(REGEX)
    refused = _refused(texts, lambda text: wrong_regex("n", text))
    assert _taken(spark, "regex", refused) == []
    assert len(refused) > len(texts) / 4


def test_a_glob_that_hadoop_takes_is_not_refused(spark: SparkSession) -> None:
    texts = _texts(GLOB)
    refused = _refused(texts, lambda text: wrong_glob("n", text))
    assert _taken(spark, "glob", refused) == []
    assert len(refused) > len(texts) / 4


@pytest.mark.parametrize("kind", ["read", "written"])
def test_a_pattern_that_spark_takes_is_not_refused(spark: SparkSession, kind: str) -> None:
    runs = [letter * n for letter in ascii_letters for n in range(1, 11)]
    refused = _refused([*runs, *_texts(PATTERN)], lambda text: wrong_time_pattern("n", text, kind == "read"))
    assert _taken(spark, kind, refused) == []
    passed = [run for run in runs if run not in refused]
    assert {*passed} - {*_taken(spark, kind, passed)} == {"V", "OO", "OOO", "vv", "vvv"}


def _texts(parts: tuple[str, ...]) -> list[str]:
    chosen = random.Random(7)
    return ["".join(chosen.choices(parts, k=chosen.randint(1, 7))) for _ in range(3000)]


def _refused(texts: list[str], judge: Callable[[str], Wrong]) -> list[str]:
    return [text for text in texts if judge(text) is not None]


def _taken(spark: SparkSession, kind: str, texts: list[str]) -> list[str]:
    judge = compiled_java(spark, JUDGE).loadClass("Judge").getMethods()
    [method] = [one for one in judge if one.getName() == "taken"]
    gateway: Any = spark.sparkContext._gateway
    given = gateway.new_array(java_class(spark, "java.lang.Object"), 2)
    given[0], given[1] = kind, "\n".join(texts)
    answers = method.invoke(None, given)
    return [text for text, answer in zip(texts, answers, strict=True) if answer == "y"]
