"""Tests of topologies in Python: `TopologyTestDriver` runs a topology in the test's process, without a JVM."""

from vsc.extras import required

with required("vsc.testing", "test"):
    from vsc.testing.driver import Record, StoreView, TopologyTestDriver, VersionedRecord, timestamp_column
    from vsc.testing.files import FileRows, file_rows

__all__ = [
    "FileRows",
    "Record",
    "StoreView",
    "TopologyTestDriver",
    "VersionedRecord",
    "file_rows",
    "timestamp_column",
]
