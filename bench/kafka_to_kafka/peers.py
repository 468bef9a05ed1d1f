"""The peers to measure: the command of each, and what has to be fetched or built first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.kafka_to_kafka import vsc_app
from bench.kafka_to_kafka.rows import RETENTION_MS, Amount
from servers.jars import BROKER, CACHE, maven
from servers.missing import program

__all__ = ["FILES", "PEERS", "QUIX", "VSC", "Peer", "Setting"]

_QUIX = "3.28.1"
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a command runs: the brokers, the prefix of its topics, its own folder."""

    brokers: str
    prefix: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to do it. `few`: for a slow peer, the rows to measure instead of all. `files`: from files to files."""

    name: str
    title: str
    command: Callable[[Setting], list[str]]
    few: tuple[int, int] | None = None
    files: bool = False

    def amount(self, every: Amount) -> Amount:
        """The rows over which this peer is measured."""
        if self.few is None:
            return every
        return every.of_stream(min(self.few[0], every.warm_up), min(self.few[1], every.measured))


def _vsc(place: Setting) -> list[str]:
    return vsc_app.command(place.folder, False, place.brokers, place.prefix)


def _vsc_files(place: Setting) -> list[str]:
    return vsc_app.command(place.folder, True, place.brokers, place.prefix)


def _streams(segments: str, guarantee: str) -> Callable[[Setting], list[str]]:
    def command(place: Setting) -> list[str]:
        build = CACHE / "bench-kafka-streams"
        maven(
            _HERE.parent / "kafka_streams", "package", "dependency:copy-dependencies", "-DincludeScope=runtime",
            f"-DoutputDirectory={build / 'lib'}", f"-Dbuild={build}", f"-Dkafka={BROKER}",
        )  # fmt: skip
        java = program("java", "install Java 17, such as with apt-get install openjdk-17-jdk-headless")
        arguments = [place.brokers, place.prefix, str(place.folder / "state"), str(RETENTION_MS), segments, guarantee]
        return [java, "-cp", f"{build / 'classes'}:{build / 'lib'}/*", "bench.VersionedJoin", *arguments]

    return command


def _quix(place: Setting) -> list[str]:
    folder = CACHE / f"quixstreams-{_QUIX}"
    if not (folder / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([folder / "bin/pip", "install", "--quiet", f"quixstreams=={_QUIX}"], check=True)
        (folder / "done").touch()
    arguments = [place.brokers, place.prefix, str(place.folder / "state"), str(RETENTION_MS)]
    return [str(folder / "bin/python"), str(_HERE / "quix_app.py"), *arguments]


VSC = Peer("vsc", "vsc, exactly once", _vsc)
FILES = Peer("files", "vsc, JSON files to JSON files", _vsc_files, files=True)
DEFAULT = Peer("default", f"Kafka Streams {BROKER}, default segments", _streams("default", "at_least_once"))
ONE = Peer("one", f"Kafka Streams {BROKER}, one segment", _streams("one", "at_least_once"))
ONCE = Peer("once", f"Kafka Streams {BROKER}, one segment, exactly once", _streams("one", "exactly_once_v2"))
QUIX = Peer("quix", f"Quix Streams {_QUIX}, `join_asof`", _quix, few=(50_000, 100_000))
PEERS = (VSC, FILES, DEFAULT, ONE, ONCE, QUIX)
