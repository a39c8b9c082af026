"""Find and read a checkpoint's tokenizer: its own ``tokenizer.json``, the caller's, or the paper's."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Unpack

from tokenizers import Tokenizer

from spscanner_rag.checkpoint.hub import HubOptions, download, is_local_path
from spscanner_rag.checkpoint.tensor_files import CheckpointError, read_bytes
from spscanner_rag.mamba2.config import Mamba2Config

TOKENIZER: Final = "tokenizer.json"
PUBLISHED_TOKENIZER: Final = "EleutherAI/gpt-neox-20b"

Check = Callable[[Path, bytes], None]


def find_tokenizer(
    given: Tokenizer | str | Path | None,
    folder: Path,
    published: bool,
    *,
    check: Check | None = None,
    progress: bool = False,
    **hub: Unpack[HubOptions],
) -> Tokenizer:
    """Return the given tokenizer, else the checkpoint's own, else that of all ``published`` scanners.

    ``given`` is a tokenizer, a ``tokenizer.json``, a folder with one, a Hub id, or None. ``check`` applies to the
    checkpoint's own file, see `read_tokenizer`. ``revision`` is ignored, since it is the checkpoint's. Raises
    `CheckpointError` if there is no tokenizer, or it cannot be read.
    """
    if isinstance(given, Tokenizer):
        return without_limits(given)
    if given is not None and not isinstance(given, str | Path):
        raise CheckpointError(
            f"tokenizer is a {type(given).__name__};"
            " expected a tokenizers.Tokenizer, a tokenizer.json, a folder that holds one, or a Hub id"
        )
    if given is None:
        if (folder / TOKENIZER).is_file():
            return read_tokenizer(folder / TOKENIZER, check)
        if not published:
            raise CheckpointError(f"{folder}: no {TOKENIZER} there; pass tokenizer=, or add the file")
    else:
        path = Path(given).expanduser()
        if path.exists():
            return read_tokenizer(path / TOKENIZER if path.is_dir() else path)
        if isinstance(given, Path) or is_local_path(given):
            raise CheckpointError(
                f"tokenizer {given}: no such file or folder; expected a {TOKENIZER} or a Hub id"
            )
    hub.pop("revision", None)
    try:
        fetched = download(given or PUBLISHED_TOKENIZER, (TOKENIZER,), progress=progress, **hub)
    except CheckpointError as error:
        raise CheckpointError(f"no tokenizer for {folder}: {error}; or pass tokenizer=PATH") from None
    return read_tokenizer(fetched / TOKENIZER)


def read_tokenizer(path: Path, check: Check | None = None) -> Tokenizer:
    """Read a ``tokenizer.json`` without its truncation and padding; `CheckpointError` if that cannot be done.

    ``check`` is called with the path and the content before the library sees it, and raises if it is wrong.
    """
    content = read_bytes(path)
    if check is not None:
        check(path, content)
    try:
        return without_limits(Tokenizer.from_buffer(content))
    except Exception as error:  # the library raises nothing more precise
        raise CheckpointError(
            f"{path}: not a tokenizer ({error}); expected a {TOKENIZER} of the tokenizers library"
        ) from None


def without_limits(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer without truncation and padding: a copy if it has them, since it is the caller's."""
    if tokenizer.truncation is None and tokenizer.padding is None:
        return tokenizer
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def refuse_small_vocabulary(config: Mamba2Config, tokenizer: Tokenizer, path: Path) -> None:
    """Raise `CheckpointError` for token ids beyond the model's vocabulary; ``path`` is that of ``config.json``."""
    ids = tokenizer.get_vocab(with_added_tokens=True).values()
    highest = max(ids, default=-1)
    if highest >= config.vocab_size:
        raise CheckpointError(
            f"{path}: vocab_size is {config.vocab_size}, the tokenizer has ids up to {highest};"
            " expected the tokenizer that the model was trained with"
        )
