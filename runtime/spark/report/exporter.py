"""What a run tells, for Prometheus: the numbers of its progress on an HTTP port (``vsc run --metrics``).

Guarantees: what is served is the state after one whole epoch; counters count from the start of this process, as
Prometheus expects. Not for the JVM's own metrics: Spark serves those.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from vsc.runtime.errors import ConfigurationError
from vsc.runtime.metrics import LATE_VERSIONS, Group, Metrics
from vsc.runtime.spark.report.progress import Batch, Display

__all__ = ["PrometheusDisplay", "address"]


def address(text: str) -> tuple[str, int]:
    """The host and port of ``prometheus:PORT`` or ``prometheus:HOST:PORT``; ConfigurationError for anything else."""
    kind, _, rest = text.partition(":")
    host, _, port = rest.rpartition(":")
    if kind != "prometheus" or not port.isdigit() or not 0 <= int(port) < 65536:
        raise ConfigurationError(
            f"--metrics takes prometheus:PORT or prometheus:HOST:PORT, not {text!r}",
            "as in --metrics prometheus:9400; a port is a number up to 65535",
        )
    return host.strip("[]") or "127.0.0.1", int(port)


class PrometheusDisplay(Display, Collector):
    """Its screen is an HTTP endpoint. `port` is the one that it listens on."""

    def __init__(self, host: str, port: int) -> None:
        """Listens. Raises ConfigurationError if the address cannot be used."""
        self._lock = threading.Lock()
        self._newest: Batch | None = None
        self._read: Counter[str] = Counter()
        self._written: Counter[str] = Counter()
        self._metrics = Metrics()
        self._batches = self._partitions = self._restored = 0
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        self._server: WSGIServer
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except (OSError, OverflowError) as error:
            raise ConfigurationError(
                f"metrics cannot be served on {host}:{port}: {error}", "give a free port on a local address"
            ) from error
        self.port = int(self._server.server_port)

    def batch(self, event: Batch) -> None:
        """Takes an epoch in."""
        with self._lock:
            self._newest = event
            self._batches += 1
            self._partitions += event.partitions
            self._restored += event.restored
            self._read.update(event.read)
            self._written.update(event.written)
            self._metrics.merge(event.metrics)

    def close(self) -> None:
        """Stops listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def collect(self) -> Iterator[Metric]:
        """All metrics, as they are now."""
        with self._lock:
            yield from self._counters()
            if self._newest is not None:
                yield from _gauges(self._newest)

    def _counters(self) -> Iterator[Metric]:
        for name, about, count in (
            ("batches", "Epochs that have ended", self._batches),
            ("partitions", "Partitions of state that were worked on, summed over epochs", self._partitions),
            ("restored_partitions", "Those whose state was taken from the checkpoint first", self._restored),
        ):
            yield CounterMetricFamily(f"vsc_{name}", about, count)
        for name, label, counts in (("input", "source", self._read), ("output", "sink", self._written)):
            rows = CounterMetricFamily(f"vsc_{name}_rows", f"Rows by {label}", labels=[label])
            for of, count in counts.items():
                rows.add_metric([of], count)
            yield rows
        data = self._metrics.as_dict()
        for group in Group:
            found = CounterMetricFamily(f"vsc_{group.value}", group.value.replace("_", " "), labels=["node", "reason"])
            for node, reasons in data.pop(group.value).items():
                assert isinstance(reasons, dict)
                for reason, count in reasons.items():
                    found.add_metric([node, reason], count)
            yield found
        late = CounterMetricFamily(
            "vsc_late_versions", "Versions, or right records, that a join may have missed", labels=["node"]
        )
        for node, versions in data.pop(LATE_VERSIONS).items():
            assert isinstance(versions, int)
            late.add_metric([node], versions)
        yield late
        peaks = GaugeMetricFamily("vsc_peak", "The highest value of what a node reports", labels=["node", "name"])
        for name, nodes in data.items():
            for node, value in nodes.items():
                assert isinstance(value, int)
                peaks.add_metric([node, name], value)
        yield peaks


def _gauges(event: Batch) -> Iterator[Metric]:
    yield _gauge("vsc_epoch", "The newest epoch", event.batch)
    yield _gauge("vsc_batch_duration_seconds", "How long the newest epoch took", event.duration_ms / 1000)
    yield _gauge("vsc_checkpoint_state_bytes", "What the checkpoint keeps of the state", event.state_bytes)
    yield _gauge("vsc_waiting_records", "Records that wait for other sources", event.waiting)
    families = [
        GaugeMetricFamily("vsc_state_rows", "Entries of a store", labels=["store"]),
        GaugeMetricFamily("vsc_state_bytes", "Bytes in a store, uncompressed", labels=["store"]),
        GaugeMetricFamily("vsc_held_records", "Records held in a store until stream time advances", labels=["store"]),
        GaugeMetricFamily("vsc_stream_time_ms", "A store's clock, the lowest of its partitions", labels=["store"]),
    ]
    for name, store in event.stores.items():
        values = (store.rows, store.bytes, store.held, store.stream_time)
        for family, value in zip(families, values, strict=True):
            if value is not None:
                family.add_metric([name], value)
    yield from families
    for name, label, about, times in (
        ("vsc_source_clock_ms", "source", "How far a source has come", event.clocks),
        ("vsc_clock_behind_ms", "store", "How far a store's clock is behind its sources", event.behind),
    ):
        clocks = GaugeMetricFamily(name, about, labels=[label])
        for of, value in times.items():
            clocks.add_metric([of], value)
        yield clocks
    history = GaugeMetricFamily(
        "vsc_history_behind_ms", "How far what keeps a table's history is behind the table", labels=["store", "node"]
    )
    for store_name, held in event.histories.items():
        if held.behind is not None:
            history.add_metric([store_name, held.node], held.behind)
    yield history
    lag = GaugeMetricFamily("vsc_source_lag", "Input still to be read from a source", labels=["source", "unit"])
    for source, units in event.lags.items():
        for unit, amount in units.items():
            lag.add_metric([source, unit], amount)
    yield lag


def _gauge(name: str, help: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help, value=value)
