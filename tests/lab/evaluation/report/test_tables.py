from spscanner_rag.lab.evaluation.report.tables import Share, shown


def test_shares_as_text() -> None:
    assert shown(Share(value=0.1234, ci_low=0.1, ci_high=0.25)) == "12.3 (10.0 to 25.0)"
    assert shown(Share(value=0.5, ci_low=None, ci_high=None)) == "50.0"
    assert shown(None) == "-"
