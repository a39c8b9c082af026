"""``spscanner serve``: what it refuses before it loads anything, and how it stops."""

import json
import os
import signal
from pathlib import Path

import httpx
import pytest

from spscanner_rag.apps.cli import main
from tests.apps.cli.serving import Serving


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_another_address_needs_a_token(
    host: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPSCANNER_TOKEN", raising=False)
    assert main(["serve", "--host", host, "--model", "does-not-exist"]) == 2
    message = capsys.readouterr().err
    assert f"--host: got {host!r} without a token" in message
    assert "SPSCANNER_TOKEN" in message


@pytest.mark.parametrize(
    ("option", "value"), [("--max-seconds", "0"), ("--max-documents", "-1"), ("--max-body-mb", "0")]
)
def test_limits_are_checked_first(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", option, value, "--model", "does-not-exist"]) == 2
    assert "expected a" in capsys.readouterr().err


def test_a_missing_token_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--token-file", str(tmp_path / "none"), "--model", "does-not-exist"]) == 2
    assert "none" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM")
def test_sigterm_lets_a_running_request_end(served: Serving) -> None:
    with served() as (server, address):
        body = {"query": "Who left?", "text": "The keeper left the island. " * 20_000, "stream": True}
        with httpx.stream("POST", f"{address}/v1/scan", json=body, timeout=60) as answer:
            lines = answer.iter_lines()
            assert "progress" in json.loads(next(lines))
            server.send_signal(signal.SIGTERM)
            last = list(lines)[-1]
        assert "result" in json.loads(last)
        assert server.stderr is not None
        rest = server.stderr.read()
        assert server.wait(30) in (0, -signal.SIGTERM)
    logged = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    assert [(line["path"], line["status"]) for line in logged] == [("/v1/scan", 200)]
    assert "Traceback" not in rest
