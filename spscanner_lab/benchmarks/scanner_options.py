"""The options of benchmarks that load one scanner."""

import argparse


def add_scanner_options(command: argparse.ArgumentParser) -> None:
    """Add ``--threads`` and ``--model``."""
    command.add_argument("--threads", type=int, default=1)
    command.add_argument(
        "--model", default=None, help="checkpoint; default: the bundled one"
    )
