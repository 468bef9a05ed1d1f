"""Values that cannot name a folder of a sink with `partition_by`: looked for once Spark could not write."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vsc.plan.nodes import Node
from vsc.plan.types import STRING
from vsc.runtime.errors import RefusedRowError
from vsc.runtime.operators.source.partition_folders import NO_VALUE
from vsc.runtime.spark.base.ddl import quoted
from vsc.runtime.values import brief

__all__ = ["check_folder_names"]

_LONGEST = 255
"""How many bytes a name may have, on disks and in HDFS."""
_ESCAPED = r"""[\x01-\x1F\x7F"#%'*/:=?\\{\[\]^]"""
"""The characters that Spark writes as a percent sign and two digits."""


def check_folder_names(rows: DataFrame, node: Node, folders: Sequence[str], place: str) -> None:
    """Raises RefusedRowError for a row of `node` of which a text can name no folder: it is too long, has a NUL, or is
    the name of the folder of null."""
    types = {column.name: column.type for column in (*node.schema.key, *node.schema.value)}
    keys = [column.name for column in node.schema.key]
    for name in (name for name in folders if types[name] == STRING):
        value = F.col(quoted(name))
        length = F.octet_length(F.regexp_replace(value, _ESCAPED, "%00")) + len(f"{name}=".encode())
        wrong = rows.where((length > _LONGEST) | F.contains(value, F.lit("\0")) | (value == NO_VALUE))
        for row in wrong.select(*map(quoted, keys), value.alias("_vsc_value")).take(1):
            key = ", ".join(f"{key} = {brief(row[key])}" for key in keys)
            raise RefusedRowError(
                f"{place}: {f'the row of {key}' if key else 'a row'}: {name} = {brief(row['_vsc_value'])} cannot name "
                f"a folder: it is too long, has a NUL character, or is the name of the folder of null",
                f"shorten it in the topology, or filter such rows; or leave `{name}` out of `partition_by`",
            )
