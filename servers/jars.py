"""The jars of a Kafka broker, of Spark's connector, of the lake formats and of S3. Maven fetches them once into the
user's cache.

``python -m servers.jars`` fetches them in advance, as CI does. ``VSC_TEST_CACHE`` names another folder for them.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from servers.missing import program
from vsc.runtime.spark.base.object_stores import cloud_package
from vsc.runtime.spark.base.releases import minor_release
from vsc.runtime.spark.connectors.jars import DELTA, ICEBERG, KAFKA, KAFKA_JARS

__all__ = [
    "BROKER",
    "CACHE",
    "broker_jars",
    "connector_jars",
    "fetched_archive",
    "lake_jars",
    "maven",
    "object_store_jars",
]

CACHE = Path(os.environ.get("VSC_TEST_CACHE") or Path.home() / ".cache/vsc-tests")
BROKER = "4.3.1"
"""The release of the broker, and of Kafka Streams in the benchmarks."""
_OF_LAKES = ("delta-", "unitycatalog-", "iceberg-")
_S3 = {"4.1": ("3.4.2", "2.29.52")}
"""The Hadoop of a Spark, and the AWS SDK that its client of S3 is built with."""
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>vsc</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>
"""


def maven(folder: Path, *arguments: str) -> None:
    """Runs Maven on the project in `folder`. MissingProgramError if it is not installed."""
    # A separate repository: Spark's Ivy cannot use what Maven leaves in the user's.
    command = [program("mvn", "install Maven, such as with apt-get install maven"), "-q", "-B", "-Dstyle.color=never"]
    subprocess.run([*command, f"-Dmaven.repo.local={CACHE / 'm2'}", *arguments], cwd=folder, check=True, timeout=600)


def broker_jars() -> Path:
    """The folder of a broker's jars."""
    return _fetched([f"org.apache.kafka:kafka_2.13:{BROKER}"], "-DincludeScope=runtime")


def connector_jars() -> list[str]:
    """The jars of Spark's connector for the installed pyspark, and those that it needs besides pyspark's own."""
    folder = _fetched([str(KAFKA.coordinates())], f"-DincludeArtifactIds={','.join(KAFKA_JARS)}")
    return sorted(map(str, folder.glob("*.jar")))


def lake_jars() -> list[str]:
    """The jars of the lake formats that have a release for the installed pyspark, except those that pyspark has."""
    found = []
    for coordinates in (DELTA.coordinates(), ICEBERG.coordinates()):
        if coordinates is not None:
            folder = _fetched([coordinates], "-DincludeScope=runtime")
            found += [str(jar) for jar in sorted(folder.glob("*.jar")) if jar.name.startswith(_OF_LAKES)]
    return found


def object_store_jars() -> list[str]:
    """Hadoop's client of S3 and Spark's module for object stores; none for a Spark that no test runs with them.

    The SDK is taken in parts, as Hadoop's bundle of all of it has 640 MB.
    """
    releases = _S3.get(minor_release())
    if releases is None:
        return []
    hadoop, sdk = releases
    wanted = [f"org.apache.hadoop:hadoop-aws:{hadoop}!software.amazon.awssdk:bundle", f"{cloud_package()}!*:*"]
    wanted += [f"software.amazon.awssdk:{part}:{sdk}" for part in ("s3", "s3-transfer-manager", "sts", "kms")]
    return sorted(map(str, _fetched(wanted, "-DincludeScope=runtime", "-DexcludeArtifactIds=slf4j-api").glob("*.jar")))


def fetched_archive(wanted: str, folder: Path) -> Path:
    """The file of Maven coordinates with a type and a classifier, in `folder`."""
    _, artifact, release, kind, classifier = wanted.split(":")
    archive = folder / f"{artifact}-{release}-{classifier}.{kind}"
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with open(CACHE / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not archive.exists():
                maven(folder, "dependency:copy", f"-Dartifact={wanted}", f"-DoutputDirectory={folder}")
    return archive


def _fetched(wanted: Sequence[str], *options: str) -> Path:
    """The folder with the jars of Maven coordinates and with what these need, except what stands behind a ``!``."""
    _, artifact, release = wanted[0].partition("!")[0].split(":")
    folder = CACHE / f"{artifact}-{release}"
    done = folder / "done"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with open(CACHE / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # several processes of the tests begin at the same time
            if not done.exists():
                (folder / "pom.xml").write_text(_POM.format("".join(map(_dependency, wanted))))
                maven(folder, "dependency:copy-dependencies", *options, "-DoutputDirectory=jars")
                done.touch()
    return folder / "jars"


def _dependency(wanted: str) -> str:
    coordinates, _, unwanted = wanted.partition("!")
    group, artifact, release = coordinates.split(":")
    named = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{release}</version>"
    if unwanted:
        group, artifact = unwanted.split(":")
        excluded = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        named += f"<exclusions><exclusion>{excluded}</exclusion></exclusions>"
    return f"<dependency>{named}</dependency>"


if __name__ == "__main__":
    print(broker_jars(), *connector_jars(), *lake_jars(), *object_store_jars(), sep="\n")
