"""``vsc run`` on a terminal, as its user sees it and stops it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.runtime.spark.support import write_json

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

TOPOLOGY = """
stream orders (id bigint, at timestamp) from files (path = '${in}/orders', format = 'json') key id timestamp at;
table counts = aggregate orders group by id select count(*) as n;
sink counts to console ();
"""
CTRL_C = b"\x03"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PYTHONS = ("Traceback", "Exception ignored", "Warning", "Error")
"""What Python would say of its own."""
_FOUR_FRAMES = (
    r"(?s)(.) starting Spark.*(?!\1)(.) starting Spark.*(?!\1|\2)(.) starting Spark.*(?!\1|\2|\3)(.) starting Spark"
)


class Terminal:
    """A command on a terminal of `columns`; its stdout goes to `out`, if that is given."""

    def __init__(self, folder: Path, *more: str, columns: int = 80, out: int | None = None) -> None:
        (folder / "t.vdsl").write_text(TOPOLOGY)
        self._screen, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        command = [sys.executable, "-m", "vsc", "run", str(folder / "t.vdsl"), "--checkpoint", str(folder / "ck")]
        command += ["--var", f"in={folder}/in", "--master", "local[2]", "--partitions", "2", *more]
        environment = {**os.environ, "TERM": "xterm", "SPARK_LOCAL_IP": "127.0.0.1"}
        self.process = subprocess.Popen(
            command, stdin=inner, stdout=inner if out is None else out, stderr=inner, env=environment,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(inner)
        self.text = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._screen)

    def press(self, key: bytes) -> None:
        """Types something: the terminal sends SIGINT to all processes of its foreground."""
        os.write(self._screen, key)

    def until(self, pattern: str, seconds: float = 240) -> None:
        """Reads on until the whole text has `pattern`."""
        ends = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            assert self._read(), f"ended before {pattern!r}: {self.text[-2000:]!r}"
            assert time.monotonic() < ends, f"no {pattern!r}: {self.text[-2000:]!r}"

    def ended(self) -> int:
        """Reads to the end; the exit status."""
        while self._read():
            pass
        return self.process.wait(60)

    def _read(self) -> bool:
        if not select.select([self._screen], [], [], 1)[0]:
            return True
        try:
            data = os.read(self._screen, 1 << 16)
        except OSError:  # nobody has the terminal open any more
            return False
        self.text += _ESCAPES.sub("", data.decode(errors="replace"))
        return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_json(tmp_path / "in/orders/0.json", [{"id": i, "at": "2026-05-04T00:00:00Z"} for i in range(2)], 0)
    return tmp_path


@pytest.mark.parametrize("keys", [CTRL_C, CTRL_C * 3])
def test_stopped_while_spark_starts(keys: bytes, folder: Path) -> None:
    with Terminal(folder) as terminal:
        terminal.until(r"starting Spark, ([2-9]|\d\d+) s")
        terminal.until(_FOUR_FRAMES)
        began = time.monotonic()
        terminal.press(keys)
        assert terminal.ended() == 130
        assert time.monotonic() - began < 60
        assert "epoch" not in terminal.text
        assert terminal.text.rstrip().endswith("interrupted: the same command continues from here")
        assert not [word for word in _PYTHONS if word in terminal.text]


@pytest.mark.seam("console sink", "a terminal")
def test_stopped_at_once_in_an_epoch_then_when_idle_with_rows_in_a_file(folder: Path) -> None:
    with Terminal(folder, columns=60) as terminal:
        terminal.until("epoch 0, ")
        terminal.press(CTRL_C)
        terminal.until("finishing epoch 0, again to stop now")
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert terminal.text.rstrip().endswith("interrupted: the same command continues from here")
        assert not [word for word in _PYTHONS if word in terminal.text]
        assert max(map(len, re.split("[\r\n]", terminal.text))) <= 60

    with (folder / "out").open("wb") as out, Terminal(folder, "--trigger", "200 ms", out=out.fileno()) as terminal:
        terminal.until(r"- idle for ([3-9]|\d\d+) seconds, waiting for new data · 2 rows in")
        assert re.search(r"rows/s · lag 0 · dropped 0 · missed 0 · held 0 · state \d entries", terminal.text)
        terminal.press(CTRL_C)
        assert terminal.ended() == 130
        assert "stopping" in terminal.text and "finished: 1 epoch, 2 rows in, 2 out" in terminal.text
        assert terminal.text.rstrip().endswith("interrupted: the same command continues from here")
        assert not [word for word in _PYTHONS if word in terminal.text]
    assert (folder / "out").read_text().count("upsert") == 2
    assert "upsert" not in terminal.text
