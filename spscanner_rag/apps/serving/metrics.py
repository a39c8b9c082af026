"""What a server counts, in Prometheus' form."""

from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Queue(Protocol):
    """What waits."""

    @property
    def waiting(self) -> int:
        """Requests that nobody reads yet."""
        ...

    @property
    def characters(self) -> int:
        """Characters that wait or are being read."""
        ...


class Metrics:
    """Counters of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.tokens = Counter(
            "spscanner_tokens_read", "Tokens that the model has read.", registry=self.registry
        )
        self.requests = Counter(
            "spscanner_requests", "Requests by path and status.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "spscanner_request_seconds",
            "Time from a request's arrival to the end of its answer.",
            ["path"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.cancelled = Counter(
            "spscanner_cancelled", "Requests given up because the client went away or time was over.",
            registry=self.registry,
        )  # fmt: skip
        self.refused = Counter(
            "spscanner_refused", "Requests refused, by status.", ["status"], registry=self.registry
        )
        self._waiting = Gauge(
            "spscanner_waiting_requests", "Requests that wait to be read.", registry=self.registry
        )
        self._characters = Gauge(
            "spscanner_characters", "Characters that wait or are being read.", registry=self.registry
        )

    def watch(self, queue: Queue) -> None:
        """Report the length of a queue whenever the metrics are asked for."""
        self._waiting.set_function(lambda: queue.waiting)
        self._characters.set_function(lambda: queue.characters)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
