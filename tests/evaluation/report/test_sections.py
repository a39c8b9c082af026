from spscanner_rag.evaluation.report.sections import Share, percent


def test_percent() -> None:
    assert percent(Share(value=0.1234, ci_low=0.1, ci_high=0.25)) == "12.3 (10.0 to 25.0)"
    assert percent(Share(value=0.5, ci_low=None, ci_high=None)) == "50.0"
    assert percent(None) == "-"
