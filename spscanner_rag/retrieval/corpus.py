"""The corpus of a retriever at one moment (texts and the counts of their words), and the folder that stores it.

The folder has documents as JSON lines, counts and vectors as memory-mapped arrays, and
a manifest.
"""

import functools
import json
import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import file_digest, sha256
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.retrieval.joined_text import JoinedText, cut
from spscanner_rag.scorers import Cancelled, never, stop_if
from spscanner_rag.text.folding import fold_texts
from spscanner_rag.text.segmentation import SentenceSegmenter

if TYPE_CHECKING:  # these import torch, which a corpus without an encoder does not need
    from spscanner_rag.encoder.meaning import Meaning
    from spscanner_rag.encoder.sentences import SentenceVectors

FORMAT = 1
_KIND = "spscanner-rag corpus"
_MANIFEST = "manifest.json"
_DOCUMENTS = "documents.jsonl"
_ARRAY = ".npy"
_OWN_FILE = re.compile(r"[0-9a-f]{12}\.(documents\.jsonl|\w+\.npy)")
_UNFINISHED = re.compile(
    rf"{_OWN_FILE.pattern}|\.{re.escape(_MANIFEST)}\.[0-9a-f]{{32}}\.part"
)
"""Names of the files that a killed program may leave."""

_MOST_FILES = 32
_LARGEST_MANIFEST = 2**16
_MOST_READS = 100  # attempts to read a folder while other programs write to it

ASCII_CHARACTERS_PER_TOKEN = (
    4  # the bundled tokenizer in English has 3.3 in dialogue, 4.4 in contracts
)


class Corpus:
    """Texts and the counts of their words.

    Immutable: `with_texts` returns the corpus after a change.

    A pickle has the counts but not the texts, which their owner joins again;
    `with_texts` then counts nothing twice. Sentences are counted as `SentenceSegmenter`
    cuts them, so that no scorer is loaded.
    """

    def __init__(
        self,
        texts: Sequence[JoinedText] = (),
        counts: CollectionIndex | None = None,
        encoder: str = "",
        vectors: "Mapping[str, SentenceVectors] | None" = None,
    ) -> None:
        self.texts = texts
        self._digests: dict[str, str] = {}  # key of a text -> digest of its sentences
        self.encoder = encoder  # the digest of the encoder that made the vectors
        self.vectors = dict(
            vectors or {}
        )  # key of a text -> vectors of its sentences; entries do not change
        self.keys = _keys(texts)
        self.counts = CollectionIndex() if counts is None else counts
        self.tokens = [estimated_tokens(joined.text) for joined in texts]

    @property
    def collection(self) -> CollectionIndex | None:
        """The counts that make scores comparable between the texts.

        None for a single text.
        """
        return self.counts if len(self.texts) > 1 else None

    def with_texts(self, texts: Sequence[JoinedText]) -> "Corpus":
        """Return the corpus of these texts. Only the new ones are counted."""
        corpus = Corpus(texts, self.counts.copy(), self.encoder, self.vectors.copy())
        wanted = set(corpus.keys)
        corpus.vectors = {
            key: own for key, own in corpus.vectors.items() if key in wanted
        }
        corpus.counts.remove(*(key for key in self.counts.keys if key not in wanted))
        if len(texts) > 1:
            for key, joined in zip(corpus.keys, texts, strict=True):
                if key not in corpus.counts:
                    corpus.counts.add(
                        key,
                        [unit.model_text for unit in cut(SentenceSegmenter(), joined)],
                    )
        return corpus

    def ranked(self, query: str) -> list[tuple[int, float]]:
        """The first stage: indices of the texts that share a word with a query, and their scores, best first."""
        numbers = {key: number for number, key in enumerate(self.keys)}
        return [(numbers[key], score) for key, score in self.counts.best_texts(query)]

    def __reduce__(self) -> tuple[type["Corpus"], tuple[object, ...]]:
        return Corpus, ((), self.counts, self.encoder, self.vectors)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def encoded(
        self, meaning: "Meaning", numbers: Iterable[int], cancelled: Cancelled = never
    ) -> None:
        """Make the vectors that some texts lack, and let ``meaning`` keep those of all of them for a scan."""
        from spscanner_rag.encoder.sentences import digest_of

        for number in numbers:
            vectors, key = self._vectors(number, meaning, cancelled), self.keys[number]
            if (
                key not in self._digests
            ):  # kept, so that the text is not cut again for every question
                self._digests[key] = digest_of(self._sentences(number))
            meaning.keep(self._digests[key], vectors)

    def knows(self, number: int, meaning: "Meaning") -> bool:
        """True if the corpus has the vectors of a text, made by this encoder."""
        return (
            self.encoder == meaning.encoder.digest and self.keys[number] in self.vectors
        )

    def meant(
        self,
        query: str,
        meaning: "Meaning",
        numbers: Iterable[int],
        cancelled: Cancelled = never,
    ) -> dict[int, float]:
        """For each of some texts, the logit of its best sentence from the cosines with a query alone."""
        found = {}
        for number in numbers:
            cosines = meaning.cosines(query, self._vectors(number, meaning, cancelled))
            logits = meaning.weights.logits(np.zeros_like(cosines), cosines)
            found[number] = float(logits.max(initial=-np.inf))
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Counts and vectors as arrays that `from_arrays` reads back."""
        arrays = self.counts.to_arrays()
        if not (made := list(self.vectors.values())):
            return arrays
        filled = [own.rows for own in made if len(own.rows)]
        width = max(own.rows.shape[1] for own in made)
        return arrays | {
            "vector_rows": np.concatenate([np.zeros((0, width), np.int8), *filled]),
            "vector_scales": np.concatenate(
                [np.zeros(0, np.float16), *(own.scales for own in made)]
            ),
            "vector_counts": np.array([len(own.scales) for own in made], np.int64),
            "vector_keys": np.array([f"{self.encoder} {key}" for key in self.vectors]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Corpus":
        """The corpus without its texts.

        ``ValueError`` for arrays that do not fit together.
        """
        counts = {
            name: array
            for name, array in arrays.items()
            if not name.startswith("vector_")
        }
        index = CollectionIndex.from_arrays(counts)
        if "vector_keys" not in arrays:
            return cls((), index)
        from spscanner_rag.encoder.sentences import SentenceVectors

        rows, scales = arrays["vector_rows"], arrays["vector_scales"]
        numbers, keys = arrays["vector_counts"], arrays["vector_keys"].tolist()
        kinds = zip(
            (rows, scales, numbers), (np.int8, np.float16, np.int64), strict=True
        )
        fit = rows.ndim == 2 and len(numbers) == len(keys) and not (numbers < 0).any()
        if not fit or any(array.dtype != kind for array, kind in kinds):
            raise ValueError("the vectors of its sentences have another form")
        stops = np.cumsum(numbers)
        if len(rows) != len(scales) or (len(stops) and int(stops[-1]) != len(rows)):
            raise ValueError(
                "the vectors of its sentences are more or fewer than their numbers say"
            )
        encoder, vectors = "", {}
        for name, start, stop in zip(
            keys, (stops - numbers).tolist(), stops.tolist(), strict=True
        ):
            encoder, _, key = str(name).rpartition(" ")
            vectors[key] = SentenceVectors(rows[start:stop], scales[start:stop])
        return cls((), index, encoder, vectors)

    def _vectors(
        self, number: int, meaning: "Meaning", cancelled: Cancelled
    ) -> "SentenceVectors":
        """The vectors of a text.

        They are made if there are none, or if another encoder made those here.
        """
        if self.encoder != meaning.encoder.digest:
            self.encoder, self.vectors = meaning.encoder.digest, {}
        key = self.keys[number]
        if key not in self.vectors:
            stop_if(cancelled, f"after {len(self.vectors)} texts were encoded")
            own = self._sentences(number)
            self.vectors[key] = meaning.vectors(
                own, after_step=lambda tokens: stop_if(cancelled)
            )
        return self.vectors[key]

    def _sentences(self, number: int) -> Sequence[str]:
        return fold_texts(
            [unit.model_text for unit in cut(SentenceSegmenter(), self.texts[number])]
        )


def _keys(texts: Sequence[JoinedText]) -> list[str]:
    """A digest of each text and the starts of its runs; equal texts are numbered."""
    keys: list[str] = []
    copies: dict[str, int] = {}
    for joined in texts:
        digest = sha256(joined.text.encode("utf-8", "surrogatepass"))
        digest.update(repr([run.start for run in joined.runs[1:]]).encode())
        key = digest.hexdigest()[:32]
        copies[key] = copy = copies.get(key, 0) + 1
        keys.append(key if copy == 1 else f"{key}#{copy}")
    return keys


def estimated_tokens(text: str) -> int:
    """Estimate tokens: four ASCII characters, or one UTF-8 byte of any other character.

    0 for white space.
    """
    if not text or text.isspace():
        return 0
    n_ascii = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    n_bytes = n_ascii if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-n_ascii // ASCII_CHARACTERS_PER_TOKEN) + n_bytes - n_ascii


def write_corpus(
    path: str | Path,
    framework: str,
    documents: Iterable[Mapping[str, Any]],
    corpus: Corpus,
) -> None:
    """Write documents, as objects of JSON values, and counts to a folder that is new, empty or was written before.

    The files get new names and the permissions of the old ones, and the manifest that
    names them replaces the old one at the end: a killed program leaves the old content.
    Calls for the same folder wait for each other. Before anything is written, raises
    ``ValueError`` for a folder with other files, or a value that JSON cannot keep.
    """
    from spscanner_rag.system.whole_files import (  # its package imports torch
        one_at_a_time,
        write_whole,
    )

    folder = Path(path).expanduser()
    lines = []
    for number, document in enumerate(documents, start=1):
        for key, value in document.items():
            check_json(value, key, f"document {document.get('id') or number!r}")
        lines.append(json.dumps(dict(document)).encode("ascii") + b"\n")
    contents: dict[str, list[bytes] | NDArray[Any]] = {
        _DOCUMENTS: lines,
        **corpus.to_arrays(),
    }
    _check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(folder):
        before = [
            place for place in folder.iterdir() if _UNFINISHED.fullmatch(place.name)
        ]
        mode = functools.reduce(
            operator.and_,
            (p.stat().st_mode for p in (*before, folder / _MANIFEST) if p.is_file()),
            -1,
        )
        files: dict[str, dict[str, Any]] = {}
        prefix = uuid4().hex[:12]
        try:
            for name, content in contents.items():
                place = (
                    folder / f"{prefix}.{name if name == _DOCUMENTS else name + _ARRAY}"
                )
                files[name] = {"file": place.name, **_written(place, content, mode)}
        except BaseException:
            _remove(folder.glob(f"{prefix}.*"))
            raise
        manifest = {
            "kind": _KIND, "format": FORMAT, "framework": framework, "documents": len(lines), "files": files
        }  # fmt: skip
        write_whole(folder / _MANIFEST, json.dumps(manifest, indent=1) + "\n")
        _remove(before)


def _written(
    place: Path, content: list[bytes] | NDArray[Any], mode: int
) -> dict[str, Any]:
    """Write a new file, with the permissions ``mode`` unless that is -1, and return its size and digest."""
    from spscanner_rag.system.whole_files import telling_of_full_disks

    with telling_of_full_disks(place), place.open("x+b") as file:
        if mode != -1:
            place.chmod(mode & 0o777)
        if isinstance(content, list):
            file.writelines(content)
        else:
            np.save(file, content, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
        return _described(file)


def _remove(places: Iterable[Path]) -> None:
    for place in places:
        with suppress(
            OSError
        ):  # another program may have it open; then the next call removes it
            place.unlink()


def read_corpus(
    path: str | Path, framework: str
) -> tuple[list[dict[str, Any]], Corpus]:
    """Read what `write_corpus` wrote for a framework: the documents, and a corpus with counts but without texts.

    Every file is compared with its digest; the arrays stay on disk until they are used.
    While another call writes, the old or the new content is read. ``ValueError`` names
    the file that is missing, damaged or of another kind.
    """
    folder = Path(path).expanduser()
    files = _manifest(folder, framework)
    for _ in range(_MOST_READS):
        try:
            return _read(folder, files)
        except FileNotFoundError as error:
            before, files = files, _manifest(folder, framework)
            if (
                files == before
            ):  # otherwise another call has written new files and removed this one
                raise _damaged(Path(error.filename), "is missing") from None
    raise _damaged(folder, "keeps changing while it is read")


def _read(
    folder: Path, files: Mapping[str, Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], Corpus]:
    """The documents and the corpus from a manifest's files.

    ``FileNotFoundError`` if one is missing.
    """
    arrays: dict[str, NDArray[Any]] = {}
    documents: list[dict[str, Any]] = []
    for name, entry in files.items():
        place = folder / str(entry["file"])
        if place.exists() and not place.is_file():
            raise _damaged(
                place, "is not a regular file"
            )  # reading a pipe would never end
        with place.open("rb") as file:
            wanted = {key: entry.get(key) for key in ("bytes", "sha256")}
            # The size is checked first: a digest of a sparse file of a terabyte takes
            # an hour.
            if (
                os.fstat(file.fileno()).st_size != wanted["bytes"]
                or _described(file) != wanted
            ):
                raise _damaged(place, "is not the file that was written")
            file.seek(0)
            content = file.read() if name == _DOCUMENTS else b""
        try:
            if name == _DOCUMENTS:
                documents = [json.loads(line) for line in content.splitlines()]
                if not all(isinstance(document, dict) for document in documents):
                    raise ValueError("a line is not an object")
            else:  # mapped, so that it can be used after the file was removed
                arrays[name] = np.lib.format.open_memmap(place, mode="r")
        except FileNotFoundError:
            raise
        except Exception as error:  # numpy reads a header with Python's tokenizer
            raise _damaged(place, f"cannot be read ({error!s:.200})") from None
    try:
        return documents, Corpus.from_arrays(arrays)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise _damaged(folder, f"has an index that cannot be used ({error})") from None


def check_json(value: object, name: str, owner: str) -> None:
    """Raise ``ValueError`` unless the value is the same after it was written to JSON and read back."""
    try:
        if json.loads(json.dumps(value, allow_nan=False)) == value:
            return
    except (TypeError, ValueError, RecursionError):
        pass
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                name, value = f"a key of {name}", key
                break
            check_json(inner, f"{name}[{key!r}]", owner)
    raise ValueError(
        f"{name} of {owner} is {type(value).__name__} {value!r:.60}, which JSON cannot"
        " keep as it is; expected strings, finite numbers, booleans, None, lists and"
        " dictionaries of these: convert it before persist"
    )


def _check_free(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(
            f"{folder}: got a file; expected a folder to persist to: choose another"
            " path"
        )
    names = [place.name for place in folder.iterdir()] if folder.is_dir() else []
    if _MANIFEST in names:
        _manifest(folder, None)
        return
    foreign = sorted(name for name in names if not _UNFINISHED.fullmatch(name))
    if foreign:
        raise ValueError(
            f"{folder}: got a folder with other files, such as {foreign[0]!r}; expected"
            " a new or empty folder, or one that was persisted to before: choose"
            " another path"
        )


def _manifest(folder: Path, framework: str | None) -> dict[str, dict[str, Any]]:
    """The manifest's entries, by file.

    ``framework`` None accepts those of any framework.
    """
    place = folder / _MANIFEST
    if not place.is_file():
        raise ValueError(
            f"{folder}: got no {_MANIFEST} there; expected a folder that persist(path)"
            " wrote"
        )
    try:
        with place.open("rb") as file:
            content = file.read(_LARGEST_MANIFEST + 1)
        if len(content) > _LARGEST_MANIFEST:
            raise ValueError(f"more than {_LARGEST_MANIFEST} bytes")
        manifest = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise _damaged(place, f"is not JSON ({error})") from None
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise ValueError(
            f"{place}: got a manifest of another program; expected a folder that"
            " persist(path) wrote"
        )
    if manifest.get("format") != FORMAT:
        raise ValueError(
            f"{place}: got format {manifest.get('format')!r:.20}; expected {FORMAT}:"
            " read it with the version of spscanner-rag that wrote it, or persist the"
            " documents again"
        )
    if framework is not None and manifest.get("framework") != framework:
        raise ValueError(
            f"{place}: got documents of {manifest.get('framework')!r:.40}; expected"
            f" those of {framework!r}: load it with that framework's retriever"
        )
    files: dict[str, dict[str, Any]] = manifest.get("files") or {}
    # A name from a damaged manifest must not lead to a file elsewhere.
    listed = (
        isinstance(files, dict) and _DOCUMENTS in files and len(files) <= _MOST_FILES
    )
    if not listed or not all(
        isinstance(entry, dict) and _OWN_FILE.fullmatch(str(entry.get("file")))
        for entry in files.values()
    ):
        raise _damaged(place, "does not list the files")
    return files


def _described(file: BufferedReader | BufferedRandom) -> dict[str, Any]:
    file.seek(0)
    digest = file_digest(file, "sha256").hexdigest()
    return {"bytes": file.tell(), "sha256": digest}


def _damaged(place: Path, what: str) -> ValueError:
    return ValueError(
        f"{place} {what}; expected it as persist(path) wrote it: persist the documents"
        " again"
    )
