"""Adds the commands of the workshop to the ``spscanner`` program."""

import typer

from spscanner_lab.commands import (
    annotate,
    evaluate,
    from_released,
    sentence_scan,
    synthesize,
    train,
)
from spscanner_rag.apps.cli.several_values import SeveralValues


def add_commands(app: typer.Typer) -> None:
    """Add ``eval``, ``train``, ``encoder``, ``synthesize`` and the like."""
    evaluation = app.command("eval", cls=SeveralValues, epilog=evaluate.RESULTS)
    evaluation(evaluate.evaluate)
    app.command(cls=SeveralValues)(train.train)
    app.command(cls=SeveralValues)(train.encoder)
    app.command("sentence-scan", cls=SeveralValues)(sentence_scan.sentence_scan)
    synthesis = app.command(cls=SeveralValues, epilog=synthesize.RESULTS)
    synthesis(synthesize.synthesize)
    annotation = app.command(cls=SeveralValues, epilog=annotate.RESULTS)
    annotation(annotate.annotate)
    app.command("from-released")(from_released.from_released)
