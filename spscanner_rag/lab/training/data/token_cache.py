"""The tokens of many documents in one file on disk, and sequences cut from them.

The file is mapped into memory, so that memory does not grow with the corpus.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.checkpoint.whole_file import whole_file
from spscanner_rag.lab.evidence.questions import Document
from spscanner_rag.lab.training import Notify
from spscanner_rag.lab.training.data.text_files import SEPARATOR, content_key, read_texts, source_of
from spscanner_rag.text.tokenization import encode, tokenize_in_pieces

_PIECE_CHARACTERS = 32_768
_FORMAT = "1"
_GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: its first n multiples, modulo 2^64, cover that range evenly for any n."""

Wanted = Callable[[Document], bool]


class TokenCache:
    """Token ids of a corpus, file after file, as `open_token_cache` writes them.

    The separator's tokens follow every document. ``tokens_by_source`` has the tokens of each file, in order.
    """

    def __init__(self, path: Path, tokens_by_source: dict[str, int]) -> None:
        self.tokens_by_source = tokens_by_source
        self._ids: NDArray[np.unsignedinteger] = np.memmap(path, path.suffix[1:], mode="r")

    def __len__(self) -> int:
        return len(self._ids)

    def read(self, start: int, stop: int) -> NDArray[np.int64]:
        """Ids of the tokens ``start`` to ``stop``: (stop - start,)."""
        return np.asarray(self._ids[start:stop], np.int64)

    def sequence(self, number: int, length: int, seed: int) -> NDArray[np.int64]:
        """Sequence ``number``: (length,), or the whole corpus if that is shorter."""
        start = place(number, max(1, len(self) - length + 1), seed)
        return self.read(start, start + length)

    def spread(self, length: int, tokens: int) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Sequences of about ``length`` tokens, spread evenly over each file, at most ``tokens`` of each file.

        Yields the file's source and the ids, (length,) or fewer.
        """
        begin = 0
        for source, total in self.tokens_by_source.items():
            take = min(length, total)
            count = max(1, min(tokens, total) // take) if take else 0
            for i in range(count):
                start = begin + i * (total - take) // max(1, count - 1)
                yield source, self.read(start, start + take)
            begin += total


def place(number: int, places: int, seed: int) -> int:
    """One of ``places`` places for example ``number``; any run of examples covers them evenly.

    They are multiples of the golden ratio, wrapped around: the distance between neighbours among the first n is
    between about a third of its mean and three times its mean.
    """
    turn = ((number + 1) * _GOLDEN + seed * 0xD1B54A32D192ED03) % 2**64
    return turn * places >> 64


def open_token_cache(
    files: Sequence[Path],
    tokenizer: Tokenizer,
    folder: Path,
    notify: Notify = lambda message: None,
    wanted: Wanted = lambda document: True,
    wanted_key: str = "",
) -> TokenCache:
    """The tokens of files, written to the folder unless it has them already.

    Parameters
    ----------
    files : sequence of Path
        Plain text, or question files, of which only the documents' texts are read.
    folder : Path
        Holds caches, each named by its files' content and the tokenizer.
    notify : callable, optional
        Called with a message after each file that is tokenized.
    wanted : callable, optional
        Says which documents to read; default all.
    wanted_key : str, default ""
        Part of the cache's name that stands for the choice of ``wanted``.

    Raises
    ------
    DataError
        For a file that cannot be read; names file and line.
    ValueError
        If there is no text in the files.
    """
    kind = "uint16" if tokenizer.get_vocab_size() <= 65_536 else "uint32"
    path = folder / f"{content_key(files, _FORMAT, tokenizer.to_str(), wanted_key)}.{kind}"
    counts = path.with_suffix(".json")
    if not path.exists():  # this file appears last, so its counts exist too
        folder.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished, unfinished.open("wb") as out:
            tokens = _write(files, tokenizer, out, kind, notify, wanted)
            counts.write_text(json.dumps(tokens), encoding="utf-8")
    tokens_by_source = _counted(counts, path)
    if sum(tokens_by_source.values()) < 2:
        raise ValueError(f"{files[0]}: got no text to learn from; expected documents")
    return TokenCache(path, tokens_by_source)


def _counted(counts: Path, path: Path) -> dict[str, int]:
    """Tokens by source; ``ValueError`` if they are not those of the token file."""
    try:
        found: dict[str, int] = json.loads(counts.read_text(encoding="utf-8"))
        if sum(found.values()) * np.dtype(path.suffix[1:]).itemsize == path.stat().st_size:
            return found
    except (OSError, ValueError, TypeError, AttributeError):
        pass
    raise ValueError(
        f"{path}: damaged, or not as long as {counts.name} says; delete both, and they are made again"
    )


def _write(
    files: Sequence[Path], tokenizer: Tokenizer, out: BinaryIO, kind: str, notify: Notify, wanted: Wanted
) -> dict[str, int]:
    """Append the tokens of files to ``out``; returns their number by source."""
    end = np.array(encode(tokenizer, SEPARATOR).ids, kind)
    tokens_by_source: dict[str, int] = {}
    for number, file in enumerate(files, 1):
        tokens = 0
        for document in filter(wanted, read_texts(file)):
            for ids, _ in tokenize_in_pieces(tokenizer, document.text, _PIECE_CHARACTERS):
                ids.astype(kind).tofile(out)
                tokens += len(ids)
            end.tofile(out)
            tokens += len(end)
        source = source_of(file)
        tokens_by_source[source if source not in tokens_by_source else f"{source} ({number})"] = tokens
        notify(f"tokenized {file.name}, {number} of {len(files)} files: {tokens:,} tokens")
    return tokens_by_source
