from spscanner_rag.lab.evaluation.settings import Setting, settings_of


def test_labels_and_keys() -> None:
    units = ["sentence", "chunk:150"]
    settings = [*settings_of(["scanner:x", "bm25"], units), Setting("bm25", "chunk", ("one", "two"))]
    labels = ["scanner:x", "bm25", "bm25, chunks of 150 words", "bm25, one, two, chunks"]
    assert [setting.label for setting in settings] == labels
    assert settings[-1].key == ("bm25, one, two", "chunk")
    assert settings[-1] != Setting("bm25, one, two", "chunk")  # which is another retriever


def test_which_settings_have_an_index() -> None:
    indexed = ["bm25", "dense", "dense:x", "hybrid:bm25+dense:x"]
    others = ["scanner", "crossencoder:bm25", "hybrid:bm25+scanner", "mamba:dense"]
    assert [Setting(name).has_index for name in [*indexed, *others]] == [True] * 4 + [False] * 4
