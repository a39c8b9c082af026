"""The run of ``spscanner eval``: the documents it reads, its progress, and what its report says about it."""

import os
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spscanner_rag.text.escaping import one_line

if TYPE_CHECKING:
    from spscanner_rag.lab.evaluation.corpus_study import CorpusStudy
    from spscanner_rag.lab.evaluation.records import RecordFile
    from spscanner_rag.lab.evaluation.settings import Setting
    from spscanner_rag.lab.evaluation.study import Study
    from spscanner_rag.lab.evidence.questions import Document
    from spscanner_rag.scorers import Scorer


def tell_found(out: Path, records: int, leftovers: int) -> None:
    """Say on standard error what an earlier run left in the folder."""
    if records:
        told = f"found {records:,} records of an earlier run, which are kept"
        sys.stderr.write(f"spscanner: {one_line(str(out))}: {told}\n")
    if leftovers:
        told = f"removed {leftovers:,} unfinished files of a run that was killed"
        sys.stderr.write(f"spscanner: {one_line(str(out))}: {told}\n")


def run_facts(bad: int) -> dict[str, str]:
    """What a report says about its run, beside its numbers."""
    from spscanner_rag.scan.devices import processor_name

    return {
        "Command": one_line(shlex.join(["spscanner", *sys.argv[1:]])),
        "Machine": f"{processor_name()}, {os.cpu_count()} cores, {platform.system()}",
        "Python": platform.python_version(),
        "Date": datetime.now(UTC).date().isoformat(),
        "Lines left out": str(bad),
    }


def documents_of(
    paths: Sequence[Path], held_out: Sequence[str], skip_bad: bool
) -> tuple[list["Document"], int]:
    """The documents of question files, and how many bad lines were left out."""
    from spscanner_rag.lab.evidence.questions import DataError, read_documents
    from spscanner_rag.lab.evidence.sampling import only_held_out

    bad: list[DataError] = []
    every = read_documents(paths, bad.append if skip_bad else None, distinct=True)
    documents = list(only_held_out(every, held_out))
    for error in bad[:5]:
        sys.stderr.write(f"spscanner: left out: {one_line(str(error))}\n")
    return documents, len(bad)


@contextmanager
def replies_kept(scorers: Mapping[str, "Scorer"], path: Path) -> Iterator[None]:
    """Keep the replies of the language models behind scorers in a file, if there are any such models."""
    from spscanner_rag.lab.llm.listwise import keep_replies
    from spscanner_rag.lab.llm.replies import ReplyFile
    from spscanner_rag.lab.retriever_names import NameParts

    if not any(NameParts.of(name).asks_a_model for name in scorers):
        yield
        return
    with ReplyFile(path) as replies:
        keep_replies(scorers.values(), replies)
        yield


def run_study(
    study: "Study | CorpusStudy",
    scorers: dict["Setting", "Scorer"],
    file: "RecordFile",
    titles: dict[str, str],
) -> None:
    """Ask every question of a study that has no record yet, and show the progress."""
    from spscanner_rag.apps.pages.terminal import open_console, progress_bars
    from spscanner_rag.scan.prepare import bundled_token_counter

    count_tokens = bundled_token_counter()  # the same for all settings, and offline
    console = open_console(sys.stderr)
    with progress_bars(console, disable=not console.is_terminal) as bars:
        for ask in study.asks:
            bar = bars.add_task(one_line(ask.setting.label), total=None)

            def show(done: int, total: int, bar: Any = bar) -> None:  # noqa: ANN401 - rich's own number
                bars.update(bar, completed=done, total=total)

            ask.run(scorers, titles, count_tokens, file, show)
