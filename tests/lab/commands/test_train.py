import pytest

from spscanner_lab.commands.train import STEPS_PER_LINE, TrainingView
from spscanner_lab.training.loop import StepReport
from spscanner_lab.training.stages.evidence import Validation


@pytest.mark.parametrize("enabled", [True, False])
def test_plain_lines_without_a_terminal(
    enabled: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    view = TrainingView(1000, enabled)
    with view.bar:
        view.preparing("tokenized [a].txt")
        for step in range(1, 2 * STEPS_PER_LINE + 1):
            view.step(StepReport(step, 0.5, 1.25, 1e-3, 8192, 2710.4))
        view.validated(
            40,
            Validation(0.5, {}, ("recall  @1  50.0  walks", "recall  @1  50.0  macro")),
        )
    shown = capsys.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    progress = [
        "tokenized [a].txt",
        "step 20 of 1,000  loss 0.5000  gradient 1.25  2,710 tokens/s",
        "step 40 of 1,000  loss 0.5000  gradient 1.25  2,710 tokens/s",
    ]
    assert lines == [
        *(progress if enabled else []),
        "step 40  recall  @1  50.0  walks",
        "step 40  recall  @1  50.0  macro",
    ]
