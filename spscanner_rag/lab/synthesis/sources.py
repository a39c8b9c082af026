r"""Documents to make data from: files, folders, and documents of LlamaIndex and LangChain.

``.txt``, ``.txt.gz`` and ``.txt.xz`` files hold documents separated by a line that holds only ``\x1e``. Each line
of a ``.jsonl`` or ``.jsonl.gz`` file is an object with the document under ``"text"``, its name under ``"doc_id"``
or ``"id"``, and perhaps a ``"title"`` and a ``"source"``. Any other file is one document of UTF-8 text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from spscanner_rag.files.reading import read, regular_files
from spscanner_rag.lab.evidence.questions import Document, expecting, json_objects, numbered_lines, require

_SEPARATOR = "\x1e"  # on a line of its own, between two documents
_TEXTS = (".txt", ".txt.gz", ".txt.xz")
_LINES = (".jsonl", ".jsonl.gz")
_IN_FOLDERS = (*_TEXTS, *_LINES, ".md", ".rst", ".text")


def source_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files among these paths and, by name, in these folders; ``ValueError`` for one without a file."""
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ValueError(f"{path}: no such file; expected a file of text, or a folder: check the path")
        if not path.is_dir():
            found.append(path)
            continue
        inside, _, _ = regular_files(str(path), _IN_FOLDERS)
        if not inside:
            raise ValueError(f"{path}: got a folder without text; expected files in {', '.join(_IN_FOLDERS)}")
        found += sorted(map(Path, inside))
    return found


def read_sources(paths: Iterable[Path]) -> Iterator[Document]:
    """Yield the documents of files, in order; `DataError` for a line, ``ValueError`` for a file without text."""
    for path in paths:
        if path.name.endswith(_LINES):
            yield from _read_lines(path)
        elif path.name.endswith(_TEXTS):
            source = _source_of(path)
            for number, text in enumerate(_texts(path), 1):
                if text.strip():
                    yield Document(f"{source}-{number}", source, "", text, ())
        else:
            yield Document(path.name, _source_of(path), "", read(path).text, ())


def framework_documents(documents: Iterable[object]) -> Iterator[Document]:
    """Yield documents of LlamaIndex (``Document``, ``TextNode``) or LangChain (``Document``), by their methods."""
    for number, document in enumerate(documents, 1):
        metadata = getattr(document, "metadata", None)
        metadata = metadata if isinstance(metadata, Mapping) else {}
        text = getattr(document, "page_content", None)
        name = getattr(document, "id", None)
        if text is None and callable(content := getattr(document, "get_content", None)):
            text, name = content(), getattr(document, "node_id", None)  # by default without metadata
        if not isinstance(text, str):
            raise TypeError(
                f"document {number} is {type(document).__name__}; expected a Document of LlamaIndex or LangChain"
            )
        title = str(metadata.get("title") or "")
        place = metadata.get("source") or metadata.get("file_name")
        yield Document(str(name or place or f"document-{number}"), "documents", title, text, ())


def _read_lines(path: Path) -> Iterator[Document]:
    expected = "a JSON object with a document under 'text'"
    for number, record in json_objects(path, expected):
        text, title = record.get("text"), record.get("title")
        require(isinstance(text, str), expected, text, f"{path}, line {number}")
        name = record.get("doc_id") or record.get("id") or f"{_source_of(path)}-{number}"
        source = str(record.get("source") or _source_of(path))
        yield Document(str(name), source, str(title) if title else "", str(text), ())


def _texts(path: Path) -> Iterator[str]:
    lines: list[str] = []
    for number, raw in numbered_lines(path):
        with expecting("UTF-8", f"{path}, line {number}"):
            line = raw.decode("utf-8")
        if line.rstrip("\r\n") == _SEPARATOR:
            yield "".join(lines)
            lines = []
        else:
            lines.append(line)
    yield "".join(lines)


def _source_of(path: Path) -> str:
    r"""A file's name without endings; of lines of documents, often called ``train``, with the folder before it.

    Bytes of the name that are not UTF-8 become escapes, such as ``\udcff``: results could not hold them.
    """
    path = Path(str(path).encode("utf-8", "backslashreplace").decode())
    name = path.name
    for ending in (*_TEXTS, *_LINES):
        name = name.removesuffix(ending)
    return f"{path.parent.name}/{name}".lstrip("/") if path.name.endswith(_LINES) else name
