"""PostgreSQL, as the tests of its connector have it."""

from tests.runtime.spark.connectors.postgres.conftest import running_server, server

__all__ = ["running_server", "server"]
