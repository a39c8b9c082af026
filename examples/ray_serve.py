"""The routes of `spscanner serve`, answered by several replicas behind Ray Serve.

In a clone of the repository:

    pip install ".[serve,ray,cpu]"
    serve run --app-dir examples ray_serve:app

Then ask as docs/serve.md says, at http://127.0.0.1:8000. Each replica has a scanner,
and packs the requests that reach it. On GPUs, write {"num_gpus": 1} instead of
"num_cpus".
"""

import os
import sys

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

try:
    from fastapi import FastAPI
    from ray import serve
except ImportError as error:
    sys.exit(f'{error}: pip install ".[serve,ray]" in a clone of spscanner-rag')


def scanner_service() -> FastAPI:
    from spscanner_rag import Scanner
    from spscanner_rag.apps.serving.app import create_app

    scanner = Scanner.from_pretrained(threads=1)
    return create_app(scanner, token=os.environ.get("SPSCANNER_TOKEN"))


Replicas = serve.deployment(
    serve.ingress(scanner_service)(),
    name="spscanner",
    num_replicas=2,
    max_ongoing_requests=256,
    ray_actor_options={"num_cpus": 1},  # as many as threads above
)
app = Replicas.bind()
