"""vsc's commands: the join from topics to topics, and from files to files."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.kafka_to_kafka.rows import RETENTION_MS
from servers.jars import connector_jars

__all__ = ["command"]

_TOPICS = """
stream payments (key string, id bigint, amount bigint)
from kafka (bootstrap_servers = '${brokers}', topic = '${prefix}payments', format = 'json') key key;
table rates (key string, rate bigint)
from kafka (bootstrap_servers = '${brokers}', topic = '${prefix}rates', format = 'json') key key
materialize versioned (retention = RETENTION ms);
stream priced = left join payments with rates select id, amount, rate;
sink priced to kafka (bootstrap_servers = '${brokers}', topic = '${prefix}priced', format = 'json');
"""
_FILES = """
stream payments (key string, id bigint, amount bigint, at bigint)
from files (path = '${folder}/payments', format = 'json', 'maxFilesPerTrigger' = '2') key key timestamp at;
table rates (key string, rate bigint, at bigint)
from files (path = '${folder}/rates', format = 'json') key key timestamp at
materialize versioned (retention = RETENTION ms);
stream priced = left join payments with rates select id, amount, rate;
sink priced to files (path = '${folder}/priced', format = 'json');
"""


def command(folder: Path, files: bool, brokers: str, prefix: str) -> list[str]:
    """``vsc run`` on two cores; an epoch has half a million rows of the stream."""
    topology = folder / "topology.vdsl"
    topology.write_text((_FILES if files else _TOPICS).replace("RETENTION", str(RETENTION_MS)))
    found = [sys.executable, "-m", "vsc", "run", str(topology), "--master", "local[2]", "--partitions", "2"]
    found += ["--checkpoint", str(folder / "checkpoint"), "--trigger", "1 second", "--progress", "none"]
    found += ["--local-dir", str(folder / "local"), "--conf", "spark.driver.memory=3g"]
    if files:
        return [*found, "--var", f"folder={folder}"]
    found += ["--conf", f"spark.jars={','.join(connector_jars())}"]
    return [*found, "--var", f"brokers={brokers}", "--var", f"prefix={prefix}"]
