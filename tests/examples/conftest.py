"""The tests' PostgreSQL, for the examples that write to one."""

from tests.runtime.spark.connectors.postgres.conftest import running_server, server

__all__ = ["running_server", "server"]
