"""The options that several commands have."""

import typer

from spscanner_rag.apps.cli.declaring import argument, option
from spscanner_rag.files.formats import formats_in_words

_FORMATS = formats_in_words()
FILES = argument(
    f"{_FORMATS[0].upper()}{_FORMATS[1:]}, or folders of them; - is standard input.",
    "FILE...",
)
OCR = option(
    "",
    "Languages of scanned PDFs, as Tesseract names them, such as eng or deu+eng; it"
    " recognizes the pages without text.",
    "LANG",
)
QUERY = option(..., "The question.", names=("--query", "-q"))
MODEL = option(None, "Checkpoint: a folder or a Hub id; default: the bundled one.")
DEVICE = option("auto", "auto, cpu, cuda, cuda:N or mps.")
THREADS = option(
    None,
    "CPU threads; default: physical cores, or OMP_NUM_THREADS if less.",
    "N",
    lowest=1,
)
TOKENIZER = option(
    None,
    "For checkpoints without one: a tokenizer.json, its folder or a Hub id.",
    "PATH",
)
READ = option(
    "auto",
    "What the token reader reads: all, a share of the tokens from 0 to 1 around the"
    " likeliest sentences, or auto, what loses nothing.",
    "auto|all|SHARE",
)
SEGMENT_TOKENS = option(
    None, "Tokens the model reads at a time; default: the scanner's."
)
CACHE = option(
    True,
    "Keep files' texts and vectors in a cache folder ($SPSCANNER_CACHE).",
    names=["--cache/--no-cache"],
)
PROGRESS = typer.Option(
    None,
    "--progress/--no-progress",
    help="Show progress on standard error; default: bars on a terminal, and elsewhere"
    " a line every ten seconds.",
    show_default=False,
)
