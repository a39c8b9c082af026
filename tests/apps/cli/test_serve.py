"""``spscanner serve``: what it refuses before it loads anything."""

import pytest

from tests.apps.cli.conftest import Run


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_another_address_needs_a_token(host: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPSCANNER_TOKEN", raising=False)
    refused = run("serve", "--host", host, "--model", "does-not-exist")
    refused.refuses(f"--host: got {host!r} without a token")
    refused.refuses("SPSCANNER_TOKEN")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--max-seconds", "0", "expected a"),
        ("--max-documents", "-1", "expected a"),
        ("--max-body-mb", "0", "expected a"),
        ("--token-file", "no-such-file", "no-such-file"),
    ],
)
def test_options_are_checked_first(option: str, value: str, message: str, run: Run) -> None:
    run("serve", option, value, "--model", "does-not-exist").refuses(message)
