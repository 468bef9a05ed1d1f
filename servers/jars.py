"""The jars of a Kafka broker, of Spark's connector and of the lake formats. Maven fetches them once into the user's
cache.

``python -m servers.jars`` fetches them in advance, as CI does. ``VSC_TEST_CACHE`` names another folder for them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from servers.missing import program
from vsc.runtime.spark.connectors.jars import DELTA, ICEBERG, KAFKA, KAFKA_JARS

__all__ = ["BROKER", "CACHE", "broker_jars", "connector_jars", "lake_jars", "maven"]

CACHE = Path(os.environ.get("VSC_TEST_CACHE") or Path.home() / ".cache/vsc-tests")
BROKER = "4.3.1"
"""The release of the broker, and of Kafka Streams in the benchmarks."""
_OF_LAKES = ("delta-", "unitycatalog-", "iceberg-")
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>vsc</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></dependency>
  </dependencies>
</project>
"""


def maven(folder: Path, *arguments: str) -> None:
    """Runs Maven on the project in `folder`. MissingProgramError if it is not installed."""
    # A separate repository: Spark's Ivy cannot use what Maven leaves in the user's.
    command = [program("mvn", "install Maven, such as with apt-get install maven"), "-q", "-B", "-Dstyle.color=never"]
    subprocess.run([*command, f"-Dmaven.repo.local={CACHE / 'm2'}", *arguments], cwd=folder, check=True, timeout=600)


def broker_jars() -> Path:
    """The folder of a broker's jars."""
    return _fetched("org.apache.kafka", "kafka_2.13", BROKER, "-DincludeScope=runtime")


def connector_jars() -> list[str]:
    """The jars of Spark's connector for the installed pyspark, and those that it needs besides pyspark's own."""
    folder = _fetched(*str(KAFKA.coordinates()).split(":"), f"-DincludeArtifactIds={','.join(KAFKA_JARS)}")
    return sorted(map(str, folder.glob("*.jar")))


def lake_jars() -> list[str]:
    """The jars of the lake formats that have a release for the installed pyspark, except those that pyspark has."""
    found = []
    for coordinates in (DELTA.coordinates(), ICEBERG.coordinates()):
        if coordinates is not None:
            folder = _fetched(*coordinates.split(":"), "-DincludeScope=runtime")
            found += [str(jar) for jar in sorted(folder.glob("*.jar")) if jar.name.startswith(_OF_LAKES)]
    return found


def _fetched(group: str, artifact: str, release: str, *options: str) -> Path:
    folder = CACHE / f"{artifact}-{release}"
    done = folder / "done"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(_POM.format(group, artifact, release))
        maven(folder, "dependency:copy-dependencies", *options, "-DoutputDirectory=jars")
        done.touch()
    return folder / "jars"


if __name__ == "__main__":
    print(broker_jars(), *connector_jars(), *lake_jars(), sep="\n")
