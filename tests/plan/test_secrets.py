"""What is taken for a secret, and what is left of a text that holds some."""

from __future__ import annotations

import time

import pytest

from tests.plan.planted import NAMES, TEXTS
from vsc.plan.secrets import instead_of_secret, is_secret, masked


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("kafka.ssl.key.password", True),
        ("kafka.ssl.keystore.key", True),
        ("fs.s3a.secret.key", True),
        ("fs.azure.account.key.me.dfs.core.windows.net", True),
        ("kafka.sasl.oauthbearer.client.secret", True),
        ("SERVICE_TOKEN", True),
        ("fs.s3a.server-side-encryption.key", True),
        ("fs.s3a.access.key", False),
        ("kafka.sasl.oauthbearer.token.endpoint.url", False),
        ("kafka.ssl.truststore.location", False),
        ("fs.azure.sas.token.provider.type", False),
        ("fs.s3a.delegation.token.binding", False),
        ("compass", False),
        ("fs.gs.auth.service.account.private.key.id", False),
        ("key", False),
        ("token_count", False),
    ],
)
def test_names(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("cannot open postgresql://me:hush@h:5/d", "cannot open postgresql://me:...@h:5/d"),
        ("jdbc:postgresql://h/d?user=me&password=hush&ssl=1", "jdbc:postgresql://h/d?user=me&password=...&ssl=1"),
        ("required username=\"me\" password = 'hu sh';", 'required username="me" password = ...;'),
        ('clientId="me" clientSecret="hush"', 'clientId="me" clientSecret=...'),
        ("{'fs.s3a.secret.key': 'hush', 'a': 1}", "{'fs.s3a.secret.key': ..., 'a': 1}"),
        ("Map(kafka.ssl.key.password=hush, b=c)", "Map(kafka.ssl.key.password=..., b=c)"),
        ("AccountKey=hush==;EndpointSuffix=x", "AccountKey=...;EndpointSuffix=x"),
        ("https://h/d?sv=1&sig=hush", "https://h/d?sv=1&sig=..."),
        ("Authorization: Bearer abcdefghijklmnop.hush", "Authorization: Bearer ..."),
        ("password=${pw} and postgresql://me:${pw}@h", "password=${pw} and postgresql://me:${pw}@h"),
        (
            "the file http://h:80/a@b has 3 tokens: none is valid",
            "the file http://h:80/a@b has 3 tokens: none is valid",
        ),
        ("sort_key = 'x', token_count=3", "sort_key = 'x', token_count=3"),
    ],
)
def test_texts(text: str, left: str) -> None:
    assert masked(text) == left
    assert masked(left) == left


@pytest.mark.parametrize("name", NAMES)
def test_every_name_of_a_secret_is_known(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_with_a_secret_is_known(text: str) -> None:
    assert instead_of_secret(text.format("hush")) is not None
    assert "hush" not in masked(f"cannot open {text.format('hush')}, line 3")


@pytest.mark.parametrize("piece", ["a-b", "ab-", "token", "Zm9v-YmFy_", "-", "sig="])
def test_a_long_text_takes_no_longer_than_its_length(piece: str) -> None:
    began = time.process_time()
    masked(piece * 20_000)
    assert time.process_time() - began < 20  # a search from each hyphen took minutes
