"""Load models of other libraries, with errors that say what to do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from spscanner_rag.system.install_hints import import_extra

T = TypeVar("T")


def load(
    from_pretrained: Callable[[str], T], name: str | Path, *, trusted: bool = False
) -> T:
    """Call a loader with a folder or Hub id.

    ``ValueError`` if it cannot be read.

    A folder that is not ``trusted`` may name no activation functions but torch's.
    """
    # These modules import torch, which BM25 does not need.
    from spscanner_rag.baselines.activations import check_activations
    from spscanner_rag.checkpoint.location import is_local_path
    from spscanner_rag.system.forks import compute_in_forks
    from spscanner_rag.text.escaping import first_line

    compute_in_forks()
    folder = Path(name).expanduser()
    means_folder = folder.exists() or isinstance(name, Path) or is_local_path(name)
    if means_folder and not folder.is_dir():
        raise ValueError(
            f"{name}: no such folder; expected the folder of a model, or a Hub id"
        )
    if means_folder and not trusted:
        check_activations(folder)
    try:
        with no_progress_bars():
            return from_pretrained(str(folder) if means_folder else str(name))
    except OSError as error:
        reason = first_line(error)
    # Raised outside the except block: the caught error may contain the request with its
    # authorization header.
    raise ValueError(
        f"cannot load {name}: {reason}; pass a local folder, or go online once"
    )


def load_by_library(
    kind: str, model: str | Path, trusted: bool, **options: object
) -> Any:  # noqa: ANN401
    """Load a model by a class of sentence-transformers.

    ``ImportError`` without the package, else as `load`.
    """
    library = import_extra(
        "sentence_transformers", f"{kind} {str(model)!r}", "baselines"
    )
    model_class = getattr(library, kind)
    options["trust_remote_code"] = trusted
    return load(lambda path: model_class(path, **options), model, trusted=trusted)


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Hide the progress bars of transformers in the block."""
    from transformers.utils import logging

    were_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if were_enabled:
            logging.enable_progress_bar()
