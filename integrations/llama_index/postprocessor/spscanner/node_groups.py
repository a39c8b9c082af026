"""Which documents of LlamaIndex are read as one text: the pages of a file."""

from collections.abc import Hashable

from llama_index.core.schema import BaseNode

from spscanner_rag.retrieval import page_label

AUTO = "auto"  # the `document_key` that joins the pages of a file to one document
PAGE_KEYS = ("page_label", "page")  # the keys that LlamaIndex's readers use
_FILE_KEYS = ("file_path", "file_name")


def group_of(node: BaseNode, document_key: str | None) -> Hashable | None:
    """A key that is equal for nodes whose documents are read as one text.

    None if a document is read alone.
    """
    if document_key is None:
        return None
    if document_key == AUTO:
        if page_label(node.metadata, PAGE_KEYS) is None:
            return None
        return next(iter(files_of(node)), None)
    value = node.metadata.get(document_key)
    return value if isinstance(value, str | int | float | None) else repr(value)


def files_of(node: BaseNode) -> list[tuple[str, str]]:
    """The files that the metadata name, each with its key."""
    files = []
    for key in _FILE_KEYS:
        if node.metadata.get(key):
            files.append((key, str(node.metadata[key])))
    return files
