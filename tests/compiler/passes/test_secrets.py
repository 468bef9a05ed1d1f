"""What a finding about a password in the text says to write is right."""

from __future__ import annotations

import re

import pytest

from vsc.compiler import check_topology


@pytest.mark.parametrize(
    ("connector", "written"),
    [
        ("jdbc (url = 'jdbc:postgresql://h/db', table = 'c', password = 'x')", "'password' = '${password}'"),
        ("jdbc (url = 'jdbc:postgresql://h/db', table = 'c', 'password' = 'x')", "'password' = '${password}'"),
        (
            "kafka (bootstrap_servers = 'b', topic = 't', format = 'avro', key_format = 'none', registry = 'http://r', "
            "registry_auth = 'me:x')",
            "registry_auth = '${registry_auth}'",
        ),
    ],
)
def test_a_password_is_to_be_a_variable(connector: str, written: str) -> None:
    text = f"table t (id string, name string) from {connector} key id;\nsink t to noop ();\n"
    (help,) = (one.help or "" for one in check_topology(text) if one.code == "VSC505")
    assert help == f"write `{written}`, and give it in the environment"
    right = re.sub(r"'?\w+'? = '(?:me:)?x'", lambda _: written, text)
    assert right != text and check_topology(right) == ()
