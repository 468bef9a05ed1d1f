"""One broker and one schema registry for all tests of Kafka, and a cluster for those that kill brokers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from servers.kafka import Broker
from servers.registry import RegistryServer


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker."""
    found = Broker(tmp_path_factory.mktemp("kafka"))
    found.start()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Three brokers, of which one may be killed; idle, they take a tenth of a core."""
    found = Broker(tmp_path_factory.mktemp("kafka"), nodes=3)
    found.start()
    yield found
    found.stop()


@pytest.fixture(scope="session")
def topic_names() -> Iterator[str]:
    return (f"topic{i}" for i in itertools.count())


@pytest.fixture
def topic(broker: Broker, topic_names: Iterator[str]) -> Callable[..., str]:
    """Makes a topic of a name that no other test has."""

    def make(partitions: int = 2, **settings: str) -> str:
        name = next(topic_names)
        broker.create(name, partitions, **settings)
        return name

    return make


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryServer]:
    """A running schema registry."""
    found = RegistryServer(tmp_path_factory.mktemp("registry"))
    found.start()
    yield found
    found.stop()
