"""The tokens of many documents in one file on disk, and sequences cut from them.

A run reads each document once. What it trains on lies uncompressed on disk and is mapped into memory, so that
memory does not grow with the corpus, and a sequence is the same in every run.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from spscanner_rag.evidence.questions import Document
from spscanner_rag.text.tokenize_in_pieces import tokenize_in_pieces
from spscanner_rag.training.data.text_files import SEPARATOR, content_key, read_texts, source_of

_PIECE_CHARACTERS = 32_768
_FORMAT = "1"
_GOLDEN = 0x9E3779B97F4A7C15
"""2^64 over the golden ratio: multiples of it, modulo 2^64, cover that range evenly from the first on."""

Notify = Callable[[str], object]
Wanted = Callable[[Document], bool]


class TokenCache:
    """Token ids of a corpus, file after file; every document is followed by the separator's tokens.

    Parameters
    ----------
    path : Path
        Of the ids, as written by `open_token_cache`.
    tokens_by_source : dict
        Number of tokens of each file, in order.
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
        """Sequences of about ``length`` tokens evenly from every file, at most ``tokens`` of each: source, ids."""
        begin = 0
        for source, total in self.tokens_by_source.items():
            take = min(length, total)
            count = max(1, min(tokens, total) // take) if take else 0
            for i in range(count):
                start = begin + i * (total - take) // max(1, count - 1)
                yield source, self.read(start, start + take)
            begin += total


def place(number: int, places: int, seed: int) -> int:
    """One of ``places`` places for an example: they fill the range evenly however many are taken, in any order.

    Multiples of the golden ratio, wrapped around: the first n of them lie nowhere closer than about a third of
    the mean distance, nor further apart than about three times it.
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
    """The tokens of files, from the folder or, if they are not there yet, written to it.

    Parameters
    ----------
    files : sequence of Path
        Plain text or questions, of which the texts are taken.
    tokenizer : Tokenizer
    folder : Path
        Where caches are kept; each is named by its files' content and the tokenizer.
    notify : callable, optional
        Called with a message after each file that is tokenized.
    wanted : callable, optional
        Says which documents to take.
    wanted_key : str
        Tells this choice of documents from others.

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
    if not path.exists():  # written last, so what is there is complete
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(path.name + ".part")
        tokens = _write(files, tokenizer, unfinished, kind, notify, wanted)
        counts.write_text(json.dumps(tokens), encoding="utf-8")
        os.replace(unfinished, path)
    tokens_by_source = json.loads(counts.read_text(encoding="utf-8"))
    if sum(tokens_by_source.values()) < 2:
        raise ValueError(f"{files[0]}: got no text to learn from; expected documents")
    return TokenCache(path, tokens_by_source)


def _write(
    files: Sequence[Path], tokenizer: Tokenizer, path: Path, kind: str, notify: Notify, wanted: Wanted
) -> dict[str, int]:
    end = np.array(tokenizer.encode(SEPARATOR, add_special_tokens=False).ids, kind)
    tokens_by_source: dict[str, int] = {}
    with path.open("wb") as out:
        for number, file in enumerate(files, 1):
            tokens = 0
            for ids in _tokenized(filter(wanted, read_texts(file)), tokenizer, end, kind):
                ids.tofile(out)
                tokens += len(ids)
            source = source_of(file)
            tokens_by_source[source if source not in tokens_by_source else f"{source} ({number})"] = tokens
            notify(f"tokenized {file.name}, {number} of {len(files)} files: {tokens:,} tokens")
        out.flush()
        os.fsync(out.fileno())
    return tokens_by_source


def _tokenized(
    documents: Iterable[Document], tokenizer: Tokenizer, end: NDArray[np.unsignedinteger], kind: str
) -> Iterator[NDArray[np.unsignedinteger]]:
    for document in documents:
        for ids, _ in tokenize_in_pieces(tokenizer, document.text, _PIECE_CHARACTERS):
            yield ids.astype(kind)
        yield end
