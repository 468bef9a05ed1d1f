"""A real server for the tests, and a database of its own for each of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from servers.missing import MissingProgramError
from servers.postgres import PostgresServer, programs


@pytest.fixture(scope="session")
def running_server() -> Iterator[PostgresServer]:
    """The server. Without PostgreSQL the tests are skipped, but where ``VSC_SERVERS=required``, as in .ci/run."""
    try:
        found = programs()
    except MissingProgramError as error:
        assert os.environ.get("VSC_SERVERS") != "required", error
        pytest.skip(str(error))
    server = PostgresServer(found)
    server.create()
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server(running_server: PostgresServer) -> Iterator[PostgresServer]:
    """The server with an empty database `vsc`."""
    running_server.query("create database vsc", database="postgres")
    yield running_server
    running_server.query("drop database vsc with (force)", database="postgres")
