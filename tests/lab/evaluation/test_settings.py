from spscanner_rag.lab.evaluation.settings import Setting, settings_of


def test_the_scanner_has_sentences_only() -> None:
    found = settings_of(["scanner", "scanner:folder", "bm25"], ["sentence", "chunk"])
    assert found == [
        Setting("scanner", "sentence"),
        Setting("scanner:folder", "sentence"),
        Setting("bm25", "sentence"),
        Setting("bm25", "chunk"),
    ]
    labels = [setting.label for setting in [*found[2:], Setting("bm25", "chunk:150")]]
    assert labels == ["bm25", "bm25, chunks", "bm25, chunks of 150 words"]


def test_a_varied_setting() -> None:
    varied = Setting("bm25", "chunk", ("one", "two"))
    assert varied.key == ("bm25, one, two", "chunk")
    assert varied.label == "bm25, one, two, chunks"
    assert varied != Setting("bm25, one, two", "chunk")  # which is another retriever


def test_which_settings_have_an_index() -> None:
    indexed = ["bm25", "dense", "dense:x", "hybrid:bm25+dense:x"]
    others = ["scanner", "crossencoder:bm25", "hybrid:bm25+scanner", "mamba:dense"]
    assert [Setting(name).has_index for name in [*indexed, *others]] == [True] * 4 + [False] * 4
