"""Fetch the files of a model from the Hugging Face Hub, or from its cache."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from spscanner_rag.checkpoint.errors import CheckpointError
from spscanner_rag.checkpoint.file_names import PICKLED, SAFETENSORS

_WEIGHTS: Final = (SAFETENSORS, f"{SAFETENSORS}.index.json", "model-*.safetensors")
_PICKLED_WEIGHTS: Final = (PICKLED, f"{PICKLED}.index.json", "pytorch_model-*.bin")
"""Patterns of the files that hold weights on the Hub: one, or several with an index."""


class HubOptions(TypedDict, total=False):
    """Options for fetching a model from the Hub.

    The keyword arguments of everything that may download.
    """

    revision: str | None  # branch, tag or commit; default: the main branch
    # True: the one stored on this machine, False: none; never part of a message
    token: str | bool | None
    cache_dir: str | Path | None  # default: the cache of `huggingface_hub`
    local_files_only: bool  # never use the network


def download(
    repository: str, patterns: Sequence[str], **hub: Unpack[HubOptions]
) -> Path:
    """Return the cached folder of a repository, named by its commit.

    Missing files are downloaded silently.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(
            snapshot_download(
                repository,
                allow_patterns=list(patterns),
                tqdm_class=_silent_bar(),
                **hub,
            )
        )
    except Exception as error:  # the HTTP library may raise anything
        if isinstance(error, LocalEntryNotFoundError) and isinstance(
            error.__cause__, Exception
        ):
            # why the look-up failed; the other error is only about the cache
            error = error.__cause__
        reason = " ".join(f"{type(error).__name__}: {error}".split())
    # Raised here, since the caught error keeps the request with its authorization
    # header.
    if isinstance(token := hub.get("token"), str) and token:
        reason = reason.replace(token, "***")
    raise CheckpointError(
        f"cannot get {repository} from the Hugging Face Hub: {reason:.600}; check name,"
        " revision and token=, go online, or pass a local folder that holds it"
    )


def _silent_bar() -> Any:  # noqa: ANN401 - a class of an untyped library
    from huggingface_hub.utils import tqdm  # type: ignore[attr-defined]

    class SilentBar(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401
            super().__init__(*args, **(kwargs | {"disable": True}))  # type: ignore[no-untyped-call]

    return SilentBar


def download_weights(
    repository: str, patterns: Sequence[str], **hub: Unpack[HubOptions]
) -> Path:
    """`download` the weights as well.

    Pickled ones are fetched only if there are no others, and from the same commit.
    """
    folder = download(repository, (*patterns, *_WEIGHTS), **hub)
    for name in (*_WEIGHTS[:2], *_PICKLED_WEIGHTS[:2]):
        if (folder / name).is_file():
            return folder
    hub["revision"] = folder.name
    return download(repository, (*patterns, *_PICKLED_WEIGHTS), **hub)
