"""``vsc run`` is given a thousand secrets, and then fails: no process, page, log, file or message shows one."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.plan.planted import NAMES, TEXTS
from tests.runtime.spark.support import write_json
from vsc.plan.secrets import instead_of_secret

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

WAYS = (
    *((name, "{}") for name in NAMES),
    *((f"fs.setting{number}", text) for number, text in enumerate(TEXTS)),
)
"""Names with a secret as value, and names that say nothing of values that hold one."""
PREFIXES = ("spark.hadoop.", "spark.executorEnv.", "spark.vsc.", "spark.kafka.clusters.c.", "spark.sql.catalog.c.")
OPTIONS = [(name, text) for name, text in WAYS if "." in name and instead_of_secret(text.format("${v}")) is None]
"""Those of the source, and those of the sink: each is a variable, from the command line or the environment."""
PAGES = ("environment/", "SQL/", "StreamingQuery/", "jobs/", "api/v1/applications")
SETTINGS = 600
"""On the command line, and in a file."""
MANY = 1000
"""All secrets; what is left of them stands in the environment, read by nothing."""


def _secret(number: int) -> str:
    return f"planted{number:04}x"


def _options(first: int) -> str:
    """Options of a connector with variables from `first` on."""
    values = (text.format(f"${{v{first + number}}}").replace("'", "''") for number, (_, text) in enumerate(OPTIONS))
    return ", ".join(f"'{name}' = '{value}'" for (name, _), value in zip(OPTIONS, values, strict=True))


TOPOLOGY = f"""
stream s (k string, n string, at bigint)
from files (path = '${{in}}', format = 'json', {_options(0)})
key k timestamp at;
stream numbers = map s select k, cast(n as int) as n;
table sums = aggregate numbers group by k select sum(n) as n;
sink sums to files (path = '${{out}}', format = 'json', {_options(len(OPTIONS))});
"""


def _settings(first: int, end: int) -> Iterator[tuple[str, str]]:
    """Settings of Spark with the secrets from `first` to `end`."""
    for number in range(first, end):
        name, text = WAYS[number % len(WAYS)]
        yield f"{PREFIXES[number // len(WAYS)]}{name}", text.format(_secret(number))


def _port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _until(path: Path, pattern: str, process: subprocess.Popen[str]) -> None:
    ends = time.monotonic() + 300
    while not list(path.glob(pattern)):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_no_secret_is_shown_anywhere(tmp_path: Path) -> None:
    write_json(tmp_path / "in/0.json", [{"k": "a", "n": "1", "at": 1}], 0)
    for name in ("events", "tmp", "local"):
        (tmp_path / name).mkdir()
    (tmp_path / "topology.vdsl").write_text(TOPOLOGY)
    port = _port()
    with open(tmp_path / "spark.properties", "w") as file:
        for name, value in _settings(SETTINGS // 2, SETTINGS):
            file.write(f"{name}={value.replace(chr(92), chr(92) * 2)}\n")
    settings = [*(f"{name}={value}" for name, value in _settings(0, SETTINGS // 2)),
                "spark.eventLog.enabled=true", "spark.eventLog.compress=false", f"spark.eventLog.dir=file://{tmp_path}/events",
                "spark.ui.enabled=true", f"spark.ui.port={port}"]  # fmt: skip
    variables = {f"v{number}": _secret(SETTINGS + number) for number in range(2 * len(OPTIONS))}
    given = [f"--var={name}={value}" for name, value in variables.items() if int(name[1:]) % 2]
    command = [sys.executable, "-m", "vsc", "run", "topology.vdsl", "--master", "local[2]", "--checkpoint", "ck",
               "--partitions", "1", "--trigger", "1 second", "--local-dir", "local", "--verbose",
               "--properties-file", "spark.properties", "--lineage", "lineage.jsonl",
               "--var", f"in={tmp_path}/in", "--var", f"out={tmp_path}/out", *given]  # fmt: skip
    environment = {name: value for name, value in variables.items() if not int(name[1:]) % 2}
    environment |= {f"PASSWORD_{n}": _secret(n) for n in range(SETTINGS + len(variables), MANY)}
    process = subprocess.Popen(
        [*command, *(part for pair in settings for part in ("--conf", pair))], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **environment, "TMPDIR": f"{tmp_path}/tmp", "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    shown: dict[str, str] = {}
    try:
        _until(tmp_path, "ck/commits/0", process)
        own = psutil.Process(process.pid)
        for one in (own, *own.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # a worker may end at any time
                shown[f"the command line of {one.pid}"] = " ".join(one.cmdline())
        for page in PAGES:
            with urlopen(f"http://127.0.0.1:{port}/{page}", timeout=60) as answer:
                shown[page] = answer.read().decode()
        write_json(tmp_path / "in/1.json", [{"k": "a", "n": "no number", "at": 2}], 1)
        shown["stdout"], shown["stderr"] = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 3 and "VSC902" in shown["stderr"]
    (tmp_path / "spark.properties").unlink()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            shown[str(path.relative_to(tmp_path))] = path.read_bytes().decode("latin-1")
    assert '"eventType":"FAIL"' in shown["lineage.jsonl"]
    assert any(name.startswith("events/") for name in shown) and "fs.s3a.secret.key" in shown["environment/"]
    found = {name: re.findall(r".{0,120}planted[0-9a-f]{4}x", text) for name, text in shown.items()}
    assert {name: texts for name, texts in found.items() if texts} == {}
