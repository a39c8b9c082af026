"""Files of questions, ours and those of others' benchmarks, told apart by content."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from spscanner_lab.evidence.acl_verbatim import is_acl_verbatim, read_acl_verbatim
from spscanner_lab.evidence.data_lines import DataError
from spscanner_lab.evidence.hotpotqa import is_hotpotqa, read_hotpotqa
from spscanner_lab.evidence.questions import Document, read_documents


def read_data_files(
    paths: Sequence[Path], on_bad: Callable[[DataError], object] | None = None
) -> Iterator[Document]:
    """Yield the documents of files, those of others' benchmarks first.

    A file that is one list is HotpotQA's, and one whose first line is a query with
    results is ACL-Verbatim's; all others are question files, as for `read_documents`,
    which gets ``on_bad``.
    """
    question_files: list[Path] = []
    for path in paths:
        if not path.is_file():
            question_files.append(path)
        elif is_hotpotqa(path):
            yield from read_hotpotqa(path)
        elif is_acl_verbatim(path):
            yield from read_acl_verbatim(path)
        else:
            question_files.append(path)
    yield from read_documents(question_files, on_bad, distinct=True)
