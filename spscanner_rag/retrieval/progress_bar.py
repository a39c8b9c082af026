"""A bar on standard error while the texts of a corpus are prepared."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from spscanner_rag.retrieval.held_texts import TextsDone


@contextmanager
def progress_bar(show: bool | None) -> Iterator[TextsDone | None]:
    """Within the block, show how many texts are prepared.

    Yields the function that is called with the number of prepared texts and of all, or
    None if nothing is shown. The bar appears with the first call, and goes at the end.

    Parameters
    ----------
    show : bool, optional
        Whether it is shown. None: if standard error is a terminal.

    Examples
    --------
    >>> from spscanner_rag.retrieval.progress_bar import progress_bar
    >>> with progress_bar(False) as texts_done:
    ...     print(texts_done)
    None
    """
    if show is None:
        show = sys.stderr is not None and sys.stderr.isatty()
    if not show:
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("documents"),
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bars.add_task("preparing", total=None)

    def texts_done(done: int, total: int) -> None:
        bars.start()
        bars.update(task, completed=done, total=total)

    try:
        yield texts_done
    finally:
        bars.stop()
