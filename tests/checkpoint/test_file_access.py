"""The files of a checkpoint: found here or on the Hub, opened, read and verified."""

import os
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors

from spscanner_rag.checkpoint import file_access, load_checkpoint, locate
from spscanner_rag.checkpoint.encoder_file import read_encoder
from spscanner_rag.checkpoint.file_access import (
    LARGEST_JSON,
    CheckpointError,
    read_json,
    read_word_vectors,
)
from spscanner_rag.checkpoint.tokenizer_file import read_tokenizer
from spscanner_rag.mamba2.model import ScannerModel
from tests.checkpoint.conftest import (
    COMMIT,
    FILES,
    assert_same_weights,
    fill_cache,
    refused,
    remove_digests,
)

KINDS = {
    "a folder, a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a folder, a pipe or a device": lambda path: os.symlink("/dev/zero", path),
    "Too many levels of symbolic links": lambda path: os.symlink(path.name, path),
    "No such file": lambda path: os.symlink("absent", path),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("digests", [True, False])
def test_what_is_no_regular_file_is_refused_by_name(
    folder: Path, name: str, kind: str, digests: bool
) -> None:
    if not digests:
        remove_digests(folder)
    (folder / name).unlink()
    KINDS[kind](folder / name)
    with refused(rf"{name}: {kind}"):
        load_checkpoint(folder)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
def test_pickled_weights_too(folder: Path, kind: str) -> None:
    remove_digests(folder)
    (folder / "model.safetensors").unlink()
    KINDS[kind](folder / "pytorch_model.bin")
    with refused(rf"pytorch_model\.bin: {kind}"):
        load_checkpoint(folder)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(LARGEST_JSON + 1)
    with refused(r"config\.json: 16,777,217 bytes; expected at most 16,777,216"):
        read_json(path)
    for read in (read_tokenizer, read_word_vectors, read_encoder):
        with path.open("wb") as file:
            file.truncate(2**40)  # a sparse file, too large for any memory
        with refused("bytes; expected at most"):
            read(path)


def test_a_message_is_one_short_line_whatever_a_file_holds() -> None:
    message = str(CheckpointError("tensor a\nb\x1b[31m\u202ec\ud800 has no place"))
    assert message == "tensor a\\x0ab\\x1b[31m\\u202ec\\ud800 has no place"
    long = str(CheckpointError(f"{'9' * 100_000}; expected less"))
    assert len(long) < 2100
    assert long.endswith("9; expected less")


SECRET = "hf_very_secret"


def test_the_bundled_checkpoint(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_access, "_BUNDLED", folder)
    monkeypatch.chdir(tmp_path)
    assert locate(None) == locate("default") == folder
    assert load_checkpoint().source == "default"
    (tmp_path / "default").mkdir()  # a folder with this name takes precedence
    assert locate("default") == Path("default")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *(
            (name, f"{name}: no such folder; expected the folder of a checkpoint")
            for name in ("./absent", "absent", "a/b/c", Path("absent"))
        ),
        (Path(__file__), "a file; expected the folder"),
        *(
            (name, "expected a folder, a Hub id owner/name, or None")
            for name in ("", 17, b"x")
        ),
    ],
)
def test_what_is_no_folder(name: Any, message: str) -> None:
    with refused(message):
        locate(name)


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


def test_an_option_that_does_not_exist(folder: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'tokne'"):
        locate(folder, tokne="hf_secret")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'tokne'"):
        load_checkpoint(folder, tokne="hf_secret")  # type: ignore[call-arg]


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
        file_access.download(
            "owner/name", ("config.json",), revision="v9", token=SECRET
        )
    assert str(caught.value).startswith(
        "cannot get owner/name from the Hugging Face Hub: "
    )
    assert "\n" not in str(caught.value)
    assert SECRET not in str(caught.value)
    # the original error contains the request, and with it the token
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
