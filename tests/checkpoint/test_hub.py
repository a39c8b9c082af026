"""Checkpoints of the Hub: from its cache, and what is asked of its client."""

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors

from spscanner_rag.checkpoint import load_checkpoint, locate
from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.hub import download
from spscanner_rag.mamba2.model import ScannerModel
from tests.checkpoint.conftest import COMMIT, assert_same_weights, fill_cache, refused

SECRET = "hf_very_secret"


def test_a_hub_id_from_the_cache(
    folder: Path, tmp_path: Path, model: ScannerModel
) -> None:
    snapshot = folder.rename(fill_cache(tmp_path / "cache", "owner/name"))
    loaded = load_checkpoint(
        "owner/name",
        cache_dir=tmp_path / "cache",
        local_files_only=True,
        token="hf_secret",
    )
    assert_same_weights(loaded.model, model)
    assert (loaded.source, loaded.folder) == ("owner/name", snapshot)
    assert "hf_secret" not in repr(loaded)


def test_a_commit_from_the_cache(folder: Path, tmp_path: Path) -> None:
    snapshot = folder.rename(fill_cache(tmp_path / "cache", "owner/name"))
    options: dict[str, Any] = {
        "cache_dir": tmp_path / "cache",
        "local_files_only": True,
    }
    assert locate("owner/name", revision=COMMIT, **options) == snapshot
    with refused("outgoing traffic has been disabled"):
        locate("owner/name", revision="v2", **options)


def test_what_the_client_is_asked(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def answer(repository: str, **kwargs: Any) -> str:
        asked.append({"repository": repository} | kwargs)
        return str(found)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", answer)
    found = folder
    options: dict[str, Any] = {
        "token": SECRET,
        "cache_dir": tmp_path,
        "local_files_only": True,
    }
    locate("owner/name", revision="v1", **options)
    assert asked[0].pop("tqdm_class")(total=3, disable=False).disable
    patterns = asked[0].pop("allow_patterns")
    assert {"config.json", "tokenizer.json", "model.safetensors"} <= set(patterns)
    assert asked == [{"repository": "owner/name", "revision": "v1"} | options]
    assert "pytorch_model.bin" not in patterns
    # without weights; pickles are fetched last, from the same commit
    found = tmp_path / COMMIT
    found.mkdir()
    locate("owner/name", revision="v1", **options)
    assert [each["revision"] for each in asked] == ["v1", "v1", COMMIT]
    assert "pytorch_model.bin" in asked[2]["allow_patterns"]


class Answer:
    """The part of an HTTP response that the Hub client's exceptions keep."""

    headers: dict[str, str] = {}  # noqa: RUF012
    request = f"GET with authorization {SECRET}"
    status_code = 503


def http_error(kind: type[errors.HfHubHTTPError]) -> errors.HfHubHTTPError:
    return kind(f"refused for {SECRET}\nsecond line", response=Answer())  # type: ignore[arg-type]


def looked_up(cause: Exception) -> Exception:
    error = errors.LocalEntryNotFoundError(
        "Cannot find an appropriate cached snapshot folder"
    )
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            http_error(errors.GatedRepoError),
            r"GatedRepoError: refused for \*\*\* second line",
        ),
        (looked_up(http_error(errors.HfHubHTTPError)), "HfHubHTTPError: refused"),
        (looked_up(ConnectionError("no route")), "ConnectionError: no route"),
        (
            errors.LocalEntryNotFoundError("Cannot find a snapshot"),
            "Cannot find a snapshot; check name, revision",
        ),
        (
            OSError(f"disk full while using {SECRET}\nmore"),
            r"OSError: disk full while using \*\*\* more; check",
        ),
        (RuntimeError("x" * 10_000 + SECRET), "pass a local folder that holds it"),
    ],
)
def test_failures(
    monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def fail(*args: Any, **kwargs: Any) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(CheckpointError, match=message) as caught:
        download("owner/name", ("config.json",), revision="v9", token=SECRET)
    assert str(caught.value).startswith(
        "cannot get owner/name from the Hugging Face Hub: "
    )
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
    # the original error contains the request, and with it the token
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
