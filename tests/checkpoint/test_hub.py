"""Downloads: what is asked of the Hub client, and every failure in one line without the token."""

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors

from spscanner_rag.checkpoint import hub
from spscanner_rag.checkpoint.file_access import CheckpointError

SECRET = "hf_very_secret"


class Answer:
    """As much of an HTTP response as the Hub client's exceptions keep."""

    headers: dict[str, str] = {}  # noqa: RUF012
    request = f"GET with authorization {SECRET}"
    status_code = 503


def http_error(kind: type[errors.HfHubHTTPError]) -> errors.HfHubHTTPError:
    return kind(f"refused for {SECRET}\nsecond line", response=Answer())  # type: ignore[arg-type]


def unreachable() -> Exception:
    error = errors.LocalEntryNotFoundError("Cannot find an appropriate cached snapshot folder")
    error.__cause__ = ConnectionError("no route")
    return error


def answered_503() -> Exception:
    error = errors.LocalEntryNotFoundError("Cannot find an appropriate cached snapshot folder")
    error.__cause__ = http_error(errors.HfHubHTTPError)
    return error


@pytest.mark.parametrize(
    "name",
    ["./model", "../model", "/model", "~/model", "a/b/c", "a\\b", "C:\\model", "owner/", "with space", "é/x"],
)
def test_names_that_are_paths(name: str) -> None:
    assert hub.is_local_path(name)


@pytest.mark.parametrize("name", ["MambaRetriever/SPScanner-130m", "gpt2", "a.b/c_d-1.5"])
def test_names_that_may_be_repositories(name: str) -> None:
    assert not hub.is_local_path(name)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (http_error(errors.GatedRepoError), "access is restricted; ask for it"),
        (http_error(errors.RepositoryNotFoundError), "no such repository, and no such local folder"),
        (http_error(errors.RevisionNotFoundError), "it has no revision 'v9'; pass a branch"),
        (http_error(errors.HfHubHTTPError), "the Hub answered 503"),
        (answered_503(), "the Hub answered 503"),
        (unreachable(), "not, or not completely, in the cache at revision 'v9', and the network is off"),
        (errors.OfflineModeIsEnabled("offline"),
         "go online once, or pass a local folder that holds owner/name"),
        (OSError(f"disk full while using {SECRET}\nmore"),
         r"OSError: disk full while using \*\*\*; try again"),
        (RuntimeError(), "RuntimeError: ; try again"),
    ],
)  # fmt: skip
def test_failures(monkeypatch: pytest.MonkeyPatch, error: Exception, message: str) -> None:
    def fail(*args: Any, **kwargs: Any) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(CheckpointError, match=message) as caught:
        hub.download("owner/name", ("config.json",), revision="v9", token=SECRET)
    assert str(caught.value).startswith("cannot get owner/name from the Hugging Face Hub: ")
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
    # the original error holds the request, and with it the token
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_what_the_client_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    def answer(repository: str, **kwargs: Any) -> str:
        asked.append({"repository": repository} | kwargs)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", answer)
    folder = hub.download(
        "owner/name", ("a", "b"), revision="v9", token=SECRET, cache_dir=tmp_path, local_files_only=True
    )
    bar = asked[0].pop("tqdm_class")
    assert folder == tmp_path
    assert asked == [
        {
            "repository": "owner/name",
            "revision": "v9",
            "token": SECRET,
            "cache_dir": tmp_path,
            "local_files_only": True,
            "allow_patterns": ["a", "b"],
        }
    ]
    assert bar(total=3, disable=False).disable
    hub.download("owner/name", (), progress=True)
    assert asked[1]["tqdm_class"] is None


def test_nothing_in_the_cache(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"in the cache {tmp_path}, and the network is off"):
        hub.download("owner/name", ("config.json",), cache_dir=tmp_path, local_files_only=True)
