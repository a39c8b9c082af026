"""The folder of a checkpoint, by its name."""

from pathlib import Path
from typing import Any

import pytest

from spscanner_rag.checkpoint import load_checkpoint, locate, location
from tests.checkpoint.conftest import refused


def test_the_bundled_checkpoint(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(location, "_BUNDLED", folder)
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


def test_an_option_that_does_not_exist(folder: Path) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'tokne'"):
        locate(folder, tokne="hf_secret")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'tokne'"):
        load_checkpoint(folder, tokne="hf_secret")  # type: ignore[call-arg]
