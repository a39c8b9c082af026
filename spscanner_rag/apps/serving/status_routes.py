"""The routes that tell how a server is, which model it has, and what it counts."""

from typing import Any

from fastapi import APIRouter, Response

from spscanner_rag.apps.serving.limits import RefusedError
from spscanner_rag.apps.serving.metrics import MEDIA_TYPE
from spscanner_rag.apps.serving.service import Service


def status_routes(service: Service) -> APIRouter:
    """The routes ``/health``, ``/ready``, ``/metrics`` and ``/v1/models``."""
    routes = APIRouter(tags=["status"])

    @routes.get("/health")
    async def health() -> dict[str, str]:
        if not service.queue.alive:
            raise RefusedError(
                503, "a thread that reads has ended; restart the server", retry_after=5
            )
        return {"status": "ok"}

    @routes.get("/ready")
    async def ready() -> dict[str, str]:
        await health()
        if service.queue.waiting >= service.limits.waiting_requests:
            raise RefusedError(503, "too many requests are waiting", retry_after=1)
        return {"status": "ready"}

    @routes.get("/metrics")
    async def metrics() -> Response:
        return Response(service.metrics.as_text(), media_type=MEDIA_TYPE)

    @routes.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [service.describe()]}

    return routes
