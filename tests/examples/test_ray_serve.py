"""The service behind Ray Serve answers from two replicas."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SECONDS = 250

PROGRAM = """
import json, os, socket, urllib.request
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import ray
from ray import serve
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
ray.init(
    num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=2**28
)
serve.start(http_options={"host": "127.0.0.1", "port": port})
from ray_serve import app
serve.run(app)
body = {"query": "Who left?", "documents": ["It rained.", "The keeper left."]}
request = urllib.request.Request(
    f"http://127.0.0.1:{port}/v2/rerank",
    json.dumps(body | {"top_n": 1}).encode(),
    {"content-type": "application/json"},
)
answers = [json.load(urllib.request.urlopen(request, timeout=60)) for _ in range(8)]
deployment = serve.status().applications["default"].deployments["spscanner"]
replicas = {str(state): count for state, count in deployment.replica_states.items()}
print(json.dumps({"answers": answers, "replicas": replicas}))
serve.shutdown()
ray.shutdown()
"""


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("ray") is None or find_spec("opencensus") is None,
    reason='needs Ray Serve: pip install "ray[serve]"',
)
def test_two_replicas_answer() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        # as `serve run --app-dir` does for the replicas
        env=os.environ | {"PYTHONPATH": str(EXAMPLES)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    # Ray writes its own lines to the same place, some after the program's
    lines = done.stdout.splitlines()
    (line,) = (line for line in lines if line.startswith('{"answers"'))
    told = json.loads(line)
    assert told["replicas"] == {"RUNNING": 2}
    assert {answer["results"][0]["index"] for answer in told["answers"]} == {1}
