"""The headers of an editor's messages, wrong ones too."""

from __future__ import annotations

import io

import pytest

from vsc.lsp.wire import MAX_BYTES, input_of


def lines(raw: bytes) -> tuple[list[bytes], list[str]]:
    """The header lines as the server gets them, and what was refused."""
    refused: list[str] = []
    reader = input_of(io.BytesIO(raw), refused.append)
    return list(iter(reader.readline, b"")), refused


@pytest.mark.parametrize("written", [b"Content-Length: 12\r\n", b"content-length:12\n", b"{}Content-Length: 0012\r\n"])
def test_a_length_is_read_however_it_is_written(written: bytes) -> None:
    assert lines(written) == ([b"Content-Length: 12\r\n"], [])


@pytest.mark.parametrize("length", [str(MAX_BYTES + 1), "9" * 5000])
def test_a_length_beyond_the_limit_is_refused_and_reading_goes_on(length: str) -> None:
    found, refused = lines(f"Content-Length: {length}\r\n\r\n{{}}Content-Length: {MAX_BYTES}\r\n".encode())
    assert found == [b"\r\n", b"\r\n", b"Content-Length: %d\r\n" % MAX_BYTES]
    assert len(refused) == 1 and "is not read: the limit is 67,108,864" in refused[0]
