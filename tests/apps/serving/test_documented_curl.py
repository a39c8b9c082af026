"""The curl lines of docs/serve.md, run by curl against a real server."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl"),
]

PAGE = Path(__file__).parents[3] / "docs" / "serve.md"
COMMANDS = re.findall(r"```sh\n(curl .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_has_curl_lines() -> None:
    assert len(COMMANDS) >= 2


@pytest.mark.parametrize("command", COMMANDS)
def test_a_documented_curl_line_is_answered(command: str, address: str) -> None:
    assert "http://127.0.0.1:8000" in command
    here = command.replace("http://127.0.0.1:8000", address)
    run = subprocess.run(["sh", "-c", here], capture_output=True, text=True, timeout=60, check=True)
    answer = json.loads(run.stdout)
    assert answer.get("results") or answer.get("documents"), answer
