"""``spscanner word-vectors``: makes the table of word vectors that a soft lexical channel reads."""

import sys
from pathlib import Path
from typing import Annotated

import typer


def word_vectors(
    model: Annotated[
        str,
        typer.Option(
            help="Embedding model: minilm (all-MiniLM-L6-v2), a name or folder for sentence-transformers."
        ),
    ],
    text: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE...",
            help="Files whose frequent words the table holds: plain text (.txt, .txt.gz, .txt.xz) or questions "
            "(.jsonl, .jsonl.gz).",
        ),
    ],
    out: Annotated[Path, typer.Option(help="File to write: word_vectors.safetensors.")],
    words: Annotated[int, typer.Option(help="Words, at most.")] = 44_000,
    dimensions: Annotated[int, typer.Option(help="Length of a vector, at most 128.")] = 96,
    progress: Annotated[bool, typer.Option(help="Say what is done.")] = True,
) -> None:
    """Embed frequent words one by one, and write their vectors for `spscanner train --word-vectors`."""
    from spscanner_rag.apps.pages.terminal import line_of, open_console
    from spscanner_rag.baselines.embedders import MINILM, encoder_of
    from spscanner_rag.checkpoint.file_access import write_word_vectors
    from spscanner_rag.checkpoint.whole_file import whole_file
    from spscanner_rag.lab.training.data.teacher import short_name
    from spscanner_rag.lab.training.word_table import check_request, make_word_vectors

    if not out.parent.is_dir():
        raise ValueError(f"{out.parent}: no such folder; expected one to write {out.name} in")
    check_request(text, words, dimensions)
    console = open_console(sys.stderr)

    def say(message: str) -> None:
        if progress:
            console.print(line_of(console, message), soft_wrap=True)

    packaged = model in ("minilm", MINILM)
    source = f"{MINILM} (Apache-2.0)" if packaged else short_name(model)
    encoder = encoder_of(MINILM if packaged else model, batch_size=256)
    table = make_word_vectors(text, encoder.passages, words, dimensions, source, say)
    with whole_file(out) as unfinished:
        write_word_vectors(unfinished, table)
    say(f"{out}: {len(table):,} words, {table.dimensions} dimensions, {out.stat().st_size / 1e6:.1f} MB")
