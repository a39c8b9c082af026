"""``spscanner synthesize decontaminate``: example files without documents that share text with test documents."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from spscanner_rag.apps.cli.arguments import optional
from spscanner_rag.apps.cli.synthesize_options import NOTHING_USABLE, MaxShare, MinWords
from spscanner_rag.text.escaping import one_line

EXIT_CODES = "Exit code: 0 if lines were kept, 1 if none is left, 2 for bad input."


def decontaminate(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Training or question files, .jsonl or .jsonl.gz."),
    ],
    against: Annotated[
        list[Path],
        typer.Option(
            metavar="TEST...", help="Test documents: question files, text files, or folders of them."
        ),
    ],
    out: Annotated[Path, typer.Option(help="File for the lines that are kept, .jsonl.")],
    report: Annotated[
        Path | None,
        optional("File for one line about each dropped document: its share, and a shared sentence.", "FILE"),
    ] = None,
    min_words: MinWords = 10,
    max_share: MaxShare = 0.01,
) -> None:
    """Copy the examples whose documents share no text with test documents."""
    from spscanner_rag.files.output import check_output
    from spscanner_rag.lab.synthesis.decontaminated_file import write_decontaminated

    if out.suffix != ".jsonl":
        raise ValueError(f"--out {out}: expected a file that ends in .jsonl")
    inputs = [str(path) for path in (*files, *against)]
    check_output(out, inputs)
    check_output(report, [*inputs, str(out)])
    if report is not None and report.resolve() == out.resolve():
        raise ValueError(f"--report {report}: got the file of --out; expected another: change the name")
    found = write_decontaminated(files, against, out, report=report, min_words=min_words, max_share=max_share)
    lines = []
    if found.kept:
        lines.append(f"{found.kept:,} documents in {one_line(str(out))}")
    lines.append(
        f"{found.dropped:,} documents dropped: they share text with {found.held_out:,} test documents"
    )
    if found.first is not None:
        first = found.first
        lines.append(
            f"the first is {one_line(first.doc_id)}, {first.share:.1%} of its sentences, most with "
            f"{one_line(first.held_out_doc_id)}: {one_line(first.example)[:200]}"
        )
    if not found.kept:
        lines.append(f"nothing is left, so {one_line(str(out))} was not written")
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    if not found.kept:
        raise typer.Exit(NOTHING_USABLE)
