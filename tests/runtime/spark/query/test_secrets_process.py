"""``vsc run`` is given a thousand secrets, and then fails: no process, page, log, file or message shows one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.runtime.spark.support import write_json

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

OPTIONS = ("fs.s3a.secret.key", "fs.azure.account.key.me.net", "fs.s3a.session.token", "fs.s3a.encryption.key")
SECRETS = ", ".join(f"'{name}' = '${{v{number}}}'" for number, name in enumerate(OPTIONS))
TOPOLOGY = f"""
stream s (k string, n string, at bigint)
from files (path = '${{in}}', format = 'json', {SECRETS})
key k timestamp at;
stream numbers = map s select k, cast(n as int) as n;
table sums = aggregate numbers group by k select sum(n) as n;
sink sums to files (path = '${{out}}', format = 'json', {SECRETS});
"""
PAGES = ("environment/", "SQL/", "StreamingQuery/", "jobs/", "api/v1/applications")
MANY = 240


def _secret(number: int) -> str:
    return f"planted{number:04}x"


def _settings() -> list[str]:
    """Secrets in settings of Spark, in each form once and many times in one."""
    forms = [
        "spark.hadoop.fs.s3a.secret.key={}",
        "spark.hadoop.fs.azure.account.key.you.net={}",
        "spark.executorEnv.DATABASE_URL=postgresql://me:{}@host/d",
        'spark.hadoop.jaas=x.PlainLoginModule required clientSecret="{}";',
        "spark.ssl.keyPassword={}",
        "spark.hadoop.query=https://host/?sig={}",
        *(f"spark.hadoop.bucket.{n}.secret.key={{}}" for n in range(MANY)),
    ]
    return [form.format(_secret(1000 + number)) for number, form in enumerate(forms)]


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
    settings = [*_settings(), "spark.eventLog.enabled=true", "spark.eventLog.compress=false", f"spark.eventLog.dir=file://{tmp_path}/events",
                "spark.ui.enabled=true", f"spark.ui.port={port}"]  # fmt: skip
    command = [sys.executable, "-m", "vsc", "run", "topology.vdsl", "--master", "local[2]", "--checkpoint", "ck",
               "--partitions", "1", "--trigger", "1 second", "--local-dir", "local",
               "--var", f"in={tmp_path}/in", "--var", f"out={tmp_path}/out",
               "--var", f"v0={_secret(0)}", f"--var=v1={_secret(1)}"]  # fmt: skip
    environment = {f"PLANTED_PASSWORD_{n}": _secret(2000 + n) for n in range(MANY)}
    process = subprocess.Popen(
        [*command, *(part for pair in settings for part in ("--conf", pair))], cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **environment, "v2": _secret(2), "v3": _secret(3), "TMPDIR": f"{tmp_path}/tmp",
             "SPARK_LOCAL_IP": "127.0.0.1"},
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
    for path in tmp_path.rglob("*"):
        if path.is_file():
            shown[str(path.relative_to(tmp_path))] = path.read_bytes().decode("latin-1")
    assert any(name.startswith("events/") for name in shown) and "fs.s3a.secret.key" in shown["environment/"]
    assert {name: text[text.index("planted") - 80 :][:120] for name, text in shown.items() if "planted0" in text
            or "planted1" in text or "planted2" in text} == {}  # fmt: skip
