"""The routes of `spscanner serve`, by several replicas behind Ray Serve: docs/scale.md, "A cluster".

    pip install "spscanner-rag[serve,ray,cpu]"
    serve run --app-dir examples ray_serve:app        # then as docs/serve.md says, at http://127.0.0.1:8000

Each replica has a scanner, and packs the requests that reach it. On GPUs, {"num_gpus": 1} instead of "num_cpus".
"""

import os
import sys

try:
    from fastapi import FastAPI
    from ray import serve
except ImportError as error:
    sys.exit(f'{error}: pip install "spscanner-rag[serve,ray]"')


def scanner_service() -> FastAPI:
    from spscanner_rag import Scanner
    from spscanner_rag.apps.serving.app import create_app

    return create_app(Scanner.from_pretrained(), token=os.environ.get("SPSCANNER_TOKEN"))


Replicas = serve.deployment(
    serve.ingress(scanner_service)(),
    name="spscanner",
    num_replicas=2,
    max_ongoing_requests=256,
    ray_actor_options={"num_cpus": 1},  # Ray lets a replica compute with as many threads
)
app = Replicas.bind()
