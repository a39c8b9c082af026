"""What the integrations import."""

import subprocess
import sys


def test_the_api_comes_without_torch() -> None:
    code = "import sys, spscanner_rag.retrieval; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")
