"""A corpus in a folder: documents as JSON lines, word counts as arrays that are mapped into memory, a manifest."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from spscanner_rag.lexical.collection_index import CollectionIndex
from spscanner_rag.retrieval.corpus import Corpus, CorpusVectors

FORMAT = 1
_KIND = "spscanner-rag corpus"
_MANIFEST = "manifest.json"
_DOCUMENTS = "documents.jsonl"
_ARRAY = ".npy"
_OWN_FILE = re.compile(r"[0-9a-f]{12}\.(documents\.jsonl|\w+\.npy)(\.part)?")


def write_corpus(
    path: str | Path, framework: str, documents: Iterable[Mapping[str, Any]], corpus: Corpus
) -> None:
    """Write documents, as objects of JSON values, and counts to a new or empty folder, or one written before.

    The files get new names, and the manifest that names them replaces the old one at the end: a killed program
    leaves the folder as it was, and the next call removes what it left. Only one program may write to a folder at
    a time. Raises ``ValueError``, and writes nothing, for another folder, or a value that JSON cannot keep.
    """
    from spscanner_rag.checkpoint.whole_file import whole_file, write_whole  # its package imports torch

    folder = Path(path).expanduser()
    lines = [_line(number, document) for number, document in enumerate(documents)]
    _check_free(folder)
    folder.mkdir(parents=True, exist_ok=True)
    prefix = uuid4().hex[:12]
    files = {}
    arrays = corpus.counts.to_arrays() | corpus.vectors.to_arrays()
    contents: dict[str, list[bytes] | NDArray[Any]] = {_DOCUMENTS: lines, **arrays}
    for name, content in contents.items():
        place = folder / f"{prefix}.{name if name == _DOCUMENTS else name + _ARRAY}"
        with whole_file(place) as unfinished, unfinished.open("wb") as file:
            if isinstance(content, list):
                file.writelines(content)
            else:
                np.save(file, content, allow_pickle=False)
        files[name] = {"file": place.name, **_described(place)}
    manifest = {
        "kind": _KIND, "format": FORMAT, "framework": framework, "documents": len(lines), "files": files
    }  # fmt: skip
    write_whole(folder / _MANIFEST, json.dumps(manifest, indent=1) + "\n")
    current = {str(entry["file"]) for entry in files.values()}
    for place in folder.iterdir():
        if place.name not in current and _OWN_FILE.fullmatch(place.name):
            with suppress(OSError):  # another program has it open; the next call removes it
                place.unlink()


def read_corpus(path: str | Path, framework: str) -> tuple[list[dict[str, Any]], Corpus]:
    """Read what `write_corpus` wrote for a framework: the documents, and a corpus with counts but without texts.

    Every file is compared with its digest; the arrays stay on disk until they are used. Raises ``ValueError``,
    which names the file, if the folder is missing, damaged or not such a one.
    """
    folder = Path(path).expanduser()
    files = _manifest(folder, framework)
    arrays: dict[str, NDArray[Any]] = {}
    documents: list[dict[str, Any]] = []
    for name, entry in files.items():
        place = folder / str(entry["file"])
        if not place.is_file() or _described(place) != {key: entry.get(key) for key in ("bytes", "sha256")}:
            raise _damaged(place, "is missing" if not place.is_file() else "is not the file that was written")
        try:
            if name == _DOCUMENTS:
                documents = [json.loads(line) for line in place.read_bytes().splitlines()]
            else:
                arrays[name] = np.load(place, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise _damaged(place, f"cannot be read ({error})") from None
    try:
        vectors = CorpusVectors.from_arrays(arrays)
        counts = {name: array for name, array in arrays.items() if not name.startswith("vector_")}
        return documents, Corpus(counts=CollectionIndex.from_arrays(counts), vectors=vectors)
    except ValueError as error:
        raise _damaged(folder, f"has an index that cannot be used ({error})") from None


def check_json(value: object, name: str, owner: str) -> None:
    """Raise ``ValueError`` unless JSON gives the value back as it is."""
    if _exact_json(value) is not None:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise _not_json(key, f"a key of {name}", owner)
            check_json(inner, f"{name}[{key!r}]", owner)
    raise _not_json(value, name, owner)


def _exact_json(value: object) -> str | None:
    """The value as JSON; None unless JSON gives it back as it is."""
    try:
        text = json.dumps(value, allow_nan=False)
        return text if json.loads(text) == value else None
    except (TypeError, ValueError, RecursionError):
        return None


def _not_json(value: object, name: str, owner: str) -> ValueError:
    return ValueError(
        f"{name} of {owner} is {type(value).__name__} {value!r:.60}, which JSON cannot keep as it is; expected "
        "strings, finite numbers, booleans, None, lists and dictionaries of these: convert it before persist"
    )


def _line(number: int, document: Mapping[str, Any]) -> bytes:
    text = _exact_json(dict(document))
    if text is None:
        owner = document.get("id") or number + 1
        for key, value in document.items():
            check_json(value, key, f"document {owner!r}")
        raise _not_json(document, "the content", f"document {owner!r}")
    return text.encode("ascii") + b"\n"


def _check_free(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder}: got a file; expected a folder to persist to: choose another path")
    names = [place.name for place in folder.iterdir()] if folder.is_dir() else []
    if _MANIFEST in names:
        _manifest(folder, None)
        return
    foreign = sorted(name for name in names if not _OWN_FILE.fullmatch(name))
    if foreign:
        raise ValueError(
            f"{folder}: got a folder with other files, such as {foreign[0]!r}; expected a new or empty folder, or "
            "one that was persisted to before: choose another path"
        )


def _manifest(folder: Path, framework: str | None) -> dict[str, dict[str, Any]]:
    """The entries of the manifest's files; ``framework`` None: whoever's."""
    place = folder / _MANIFEST
    if not place.is_file():
        raise ValueError(f"{folder}: got no {_MANIFEST} there; expected a folder that persist(path) wrote")
    try:
        manifest = json.loads(place.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _damaged(place, f"is not JSON ({error})") from None
    if not isinstance(manifest, dict) or manifest.get("kind") != _KIND:
        raise ValueError(
            f"{place}: got the manifest of something else; expected a folder that persist(path) wrote"
        )
    if manifest.get("format") != FORMAT:
        raise ValueError(
            f"{place}: got format {manifest.get('format')!r:.20}; expected {FORMAT}: read it with the version of "
            "spscanner-rag that wrote it, or persist the documents again"
        )
    if framework is not None and manifest.get("framework") != framework:
        raise ValueError(
            f"{place}: got documents of {manifest.get('framework')!r:.40}; expected those of {framework!r}: load "
            "it with that framework's retriever"
        )
    files = manifest.get("files")
    if not isinstance(files, dict) or _DOCUMENTS not in files or not all(map(_is_entry, files.values())):
        raise _damaged(place, "does not list the files")
    return files


def _is_entry(entry: object) -> bool:
    # A name from a damaged manifest must not lead to a file elsewhere.
    return isinstance(entry, dict) and _OWN_FILE.fullmatch(str(entry.get("file"))) is not None


def _described(place: Path) -> dict[str, Any]:
    with place.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def _damaged(place: Path, what: str) -> ValueError:
    return ValueError(f"{place} {what}; expected it as persist(path) wrote it: persist the documents again")
