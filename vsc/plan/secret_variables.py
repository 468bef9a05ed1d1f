"""Which variables of a plan hold a secret: those of its options that do, whatever the variables are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vsc.plan.connectors.facts import VARIABLE, written
from vsc.plan.nodes import Connector, Plan
from vsc.plan.secrets import instead_of_secret, is_secret

__all__ = ["secret_variables"]

_ANY = "x" * 16
"""What stands for the value of a variable."""


def secret_variables(plan: Plan) -> Mapping[str, str]:
    """The secret variables by name, each with an option that uses it: ``'password' = '${login}'``, and
    ``url = 'jdbc:postgresql://h/d?password=${login}'``."""
    connectors = [*(node.source.connector for node in plan.sources), *(sink.connector for sink in plan.sinks)]
    return {name: option for connector in connectors for option, name in _secret(connector)}


def _secret(connector: Connector) -> Iterator[tuple[str, str]]:
    for option, value in (*connector.spark_options, *connector.options):
        text = written(value)
        for name in VARIABLE.findall(text):
            given = text.replace(f"${{{name}}}", _ANY)
            if is_secret(option) or instead_of_secret(given) is not None:
                yield option, name
