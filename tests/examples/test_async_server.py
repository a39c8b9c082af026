import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "async_server.py"


@pytest.mark.slow
def test_many_clients_and_one_that_hangs_up() -> None:
    run = subprocess.run(
        [sys.executable, str(SCRIPT)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    lines = run.stdout.splitlines()
    answered = re.match(r"24 clients were answered in ([\d.]+) s", lines[0])
    assert answered is not None
    ticks = re.match(r"the event loop ticked (\d+) times meanwhile, the longest pause was (\d+) ms", lines[1])
    assert ticks is not None
    assert int(ticks[1]) > 20
    assert int(ticks[2]) / 1000 < float(answered[1]) / 3
    assert lines[2] == "the client that hung up got None, the one without a question 400"
    assert len(lines) == 6
    assert all(re.match(r"0\.\d{3}  persuasion\.txt \d+-\d+  \S", line) for line in lines[3:])
