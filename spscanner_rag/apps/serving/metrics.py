"""What a server counts, in the format of Prometheus.

No label comes from a client: a path is that of a route, such as
``/v1/collections/{digest}``, or "other", and a status is a number that the server
chose.
"""

from typing import Protocol

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

MEDIA_TYPE = CONTENT_TYPE_LATEST

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
"""The upper bounds of the histogram's buckets."""


class WaitingRequests(Protocol):
    """A queue whose length is reported."""

    @property
    def waiting(self) -> int:
        """The number of requests that are not yet being read."""
        ...


class Metrics:
    """The counters of one server.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.add_request("/v1/scan", 429, seconds=0.004)
    >>> 'spscanner_refused_total{status="429"} 1.0' in metrics.as_text().decode()
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "spscanner_requests",
            "Requests by route and status.",
            ["path", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "spscanner_request_seconds",
            "Time from a request's arrival to the end of its answer.",
            ["path"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._refused = Counter(
            "spscanner_refused",
            "Requests that were refused or failed, by status.",
            ["status"],
            registry=self._registry,
        )
        self._tokens = Counter(
            "spscanner_tokens_read",
            "Tokens of the texts that the model has read to their end.",
            registry=self._registry,
        )
        self._waiting = Gauge(
            "spscanner_waiting_requests",
            "Requests that are not yet being read.",
            registry=self._registry,
        )

    def watch(self, queue: WaitingRequests) -> None:
        """Report the length of a queue whenever the metrics are asked for."""
        self._waiting.set_function(lambda: queue.waiting)

    def add_tokens(self, number: int) -> None:
        """Count tokens that the model has read."""
        self._tokens.inc(number)

    def add_request(self, path: str, status: int, seconds: float) -> None:
        """Count a request.

        ``path`` is that of its route, never the one that the client sent.
        """
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)
        if status >= 400:
            self._refused.labels(str(status)).inc()

    def as_text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)
