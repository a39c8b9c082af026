r"""Documents to make data from, in files, folders, LlamaIndex and LangChain.

``.txt``, ``.txt.gz`` and ``.txt.xz`` files hold documents separated by a line that
holds only ``\x1e``. Each line of a ``.jsonl`` or ``.jsonl.gz`` file is an object with
the document under ``"text"``, its name under ``"doc_id"`` or ``"id"``, and optionally a
``"title"`` and a ``"source"``. Any other file is one document of UTF-8 text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from spscanner_lab.evidence.data_lines import (
    expecting,
    json_objects,
    numbered_lines,
    require,
)
from spscanner_lab.evidence.questions import Document
from spscanner_rag.files.folders import regular_files
from spscanner_rag.files.reading import read as read_file

_SEPARATOR = "\x1e"  # on a line of its own, between two documents
_TEXTS = (".txt", ".txt.gz", ".txt.xz")
_LINES = (".jsonl", ".jsonl.gz")
_IN_FOLDERS = (*_TEXTS, *_LINES, ".md", ".rst", ".text")


def source_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files among these paths and, sorted, in these folders.

    ``ValueError`` if a path has none.
    """
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ValueError(
                f"{path}: no such file; expected a file of text, or a folder: check the"
                " path"
            )
        if not path.is_dir():
            files.append(path)
            continue
        names_inside = regular_files(str(path), _IN_FOLDERS).with_endings
        if not names_inside:
            raise ValueError(
                f"{path}: got a folder without text; expected files in"
                f" {', '.join(_IN_FOLDERS)}"
            )
        files += sorted(map(Path, names_inside))
    return files


def read_sources(paths: Iterable[Path]) -> Iterator[Document]:
    """Yield documents of files, in order.

    `DataError` for a bad line, ``ValueError`` for a file without text.
    """
    for path in paths:
        source = _source_of(path)
        if path.name.endswith(_LINES):
            yield from _read_lines(path)
        elif path.name.endswith(_TEXTS):
            for number, text in enumerate(_texts(path), 1):
                if text.strip():
                    yield Document(f"{source}-{number}", source, "", text, ())
        else:
            yield Document(path.name, source, "", read_file(path).text, ())


def framework_documents(documents: Iterable[object]) -> Iterator[Document]:
    """Yield documents of LlamaIndex or LangChain, recognized by their methods.

    These are a ``Document`` or ``TextNode`` of LlamaIndex, and a ``Document`` of
    LangChain.
    """
    for number, document in enumerate(documents, 1):
        text = getattr(document, "page_content", None)
        name = getattr(document, "id", None)
        get_content = getattr(document, "get_content", None)
        if text is None and callable(get_content):
            text = get_content()  # by default without metadata
            name = getattr(document, "node_id", None)
        if not isinstance(text, str):
            raise TypeError(
                f"document {number} is {type(document).__name__}; expected a Document"
                " of LlamaIndex or LangChain"
            )
        metadata = getattr(document, "metadata", None)
        if not isinstance(metadata, Mapping):
            metadata = {}
        title = str(metadata.get("title") or "")
        place = metadata.get("source") or metadata.get("file_name")
        doc_id = str(name or place or f"document-{number}")
        yield Document(doc_id, "documents", title, text, ())


def _read_lines(path: Path) -> Iterator[Document]:
    expected = "a JSON object with a document under 'text'"
    for number, record in json_objects(path, expected):
        text = record.get("text")
        require(isinstance(text, str), expected, text, f"{path}, line {number}")
        name = record.get("doc_id") or record.get("id")
        doc_id = str(name or f"{_source_of(path)}-{number}")
        source = str(record.get("source") or _source_of(path))
        title = str(record.get("title") or "")
        yield Document(doc_id, source, title, str(text), ())


def _texts(path: Path) -> Iterator[str]:
    """Yield the texts between lines that hold only the separator."""
    lines: list[str] = []
    for number, encoded_line in numbered_lines(path):
        with expecting("UTF-8", f"{path}, line {number}"):
            line = encoded_line.decode("utf-8")
        if line.rstrip("\r\n") == _SEPARATOR:
            yield "".join(lines)
            lines = []
        else:
            lines.append(line)
    yield "".join(lines)


def _source_of(path: Path) -> str:
    r"""Return a file's name without endings.

    A JSON Lines file, often called ``train``, gets its folder's name as well. Bytes of
    the name that are not UTF-8 become escapes, such as ``\udcff``, since results could
    not hold them.
    """
    path = Path(str(path).encode("utf-8", "backslashreplace").decode())
    name = path.name
    for ending in (*_TEXTS, *_LINES):
        name = name.removesuffix(ending)
    if path.name.endswith(_LINES):
        return f"{path.parent.name}/{name}".lstrip("/")
    return name
