"""The units of published scanners: the original's, and exact spans on any text."""

import json
import os
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from hypothesis import given, settings
from nltk.tokenize.punkt import PunktLanguageVars
from tokenizers import Tokenizer

from spscanner_rag.text import punkt
from spscanner_rag.text.reference_segmentation import ReferenceSegmenter
from spscanner_rag.text.tokenization import tokenize_units
from spscanner_rag.text.units import Unit
from tests.fakes import squeezed, words
from tests.text.test_segmentation import any_text, assert_exact


@pytest.fixture(scope="module")
def make() -> Callable[[Callable[[str], int]], ReferenceSegmenter]:
    def build(count_tokens: Callable[[str], int]) -> ReferenceSegmenter:
        try:
            return ReferenceSegmenter(count_tokens, local_files_only=True)
        except FileNotFoundError as missing:
            if os.environ.get("CI") == "true":
                raise
            pytest.skip(str(missing))

    return build


@pytest.fixture(scope="module")
def by_words(
    make: Callable[[Callable[[str], int]], ReferenceSegmenter],
) -> ReferenceSegmenter:
    return make(words)


@pytest.mark.parametrize("document", ["abbreviations", "meeting", "novel", "paper"])
def test_units_ids_and_ends_are_the_originals(
    document: str, oracles: Path, make: Callable
) -> None:
    expected = json.loads(
        (oracles / "segmentation" / f"{document}.json").read_text(encoding="utf-8")
    )
    tokenizer = Tokenizer.from_file(str(oracles / "tokenizer" / "gpt-neox-20b.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    segmenter = make(
        lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
    )
    units = segmenter.segment(expected["text"])
    assert_exact(expected["text"], units, reads_all=False)
    assert [unit.model_text for unit in units] == expected["segments"]
    for part_characters in (100, 5000, 32768):
        tokens = tokenize_units(tokenizer, units, "contained", part_characters)
        assert tokens.input_ids.tolist() == expected["input_ids"]
        assert tokens.unit_ends.tolist() == expected["end_token_indices"]


@settings(max_examples=200)
@given(text=any_text)
def test_spans_are_exact_whatever_the_text(text: str, make: Callable) -> None:
    def visible(part: str) -> int:
        return len(squeezed(part))

    units = make(visible).segment(text)
    assert_exact(text, units, reads_all=False)
    assert len(units) == 1 or all(visible(unit.model_text) >= 20 for unit in units)


def test_cut_after_commas_and_semicolons_and_merged_to_twenty(
    by_words: ReferenceSegmenter,
) -> None:
    seven, twenty = "one two three four five six seven", "word " * 19 + "last"
    text = f"{seven}, {seven}; {seven}, {twenty}. {twenty}, end."
    assert [unit.model_text for unit in by_words.segment(text)] == [
        f"{seven}, {seven}; {seven},",
        f" {twenty}.",
        f"{twenty}, end.",  # the short last unit joined its predecessor
    ]


def test_white_space_between_sentences_is_not_read(
    by_words: ReferenceSegmenter,
) -> None:
    sentence = (
        "This one has words, namely more than twenty of them, "
        + "word " * 12
        + "in all."
    )
    first, second = by_words.segment(f"\n\n {sentence}\n\n\n{sentence}")
    assert first.model_text + second.model_text == sentence + sentence
    assert (first.start, second.start) == (3, 3 + len(sentence) + 3)


def test_long_pieces_are_cut_at_lines_then_every_fifty_words(
    by_words: ReferenceSegmenter,
) -> None:
    line, long_line = "word " * 29 + "end\n", "a  \t b " * 60
    units = by_words.segment(line + line + long_line)
    assert [unit.model_text for unit in units] == [
        line,
        line,
        *[" ".join("ab" * 25)] * 2,
        " ".join("ab" * 10),
    ]
    assert_exact(line + line + long_line, units, reads_all=False)


def test_some_white_space_at_the_start_is_read(by_words: ReferenceSegmenter) -> None:
    (unit,) = by_words.segment("\n\xa0 \u2028 Some words.")
    assert unit == Unit(5, 16, "\u2028 Some words.")


@pytest.mark.parametrize(
    "piece",
    ["x" * 5000, ("y" * 300 + " ") * 40, ("z" * 30 + "\t ") * 120, "é\u0301" * 1500],
)
def test_pieces_that_the_original_drops_are_cut_and_kept(
    piece: str, make: Callable
) -> None:
    text = f"Before it, {piece}, and behind it."
    units = make(len).segment(text)
    assert_exact(text, units, reads_all=False)
    assert all(len(unit.model_text) <= 1100 for unit in units)
    assert len(units) >= len(piece) / 1000


def test_characters_of_white_space_only_join_the_unit_before(make: Callable) -> None:
    text = (
        "Some words to begin with." + "\u200b " + "\x1c" * 60 + "; " + "\x1c" * 60 + ","
    )
    assert_exact(text, make(len).segment(text), reads_all=False)


def test_the_reading_counts_tokens_of_what_the_model_reads(make: Callable) -> None:
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return len(text.encode())  # fails for a lone surrogate

    units = make(count).segment(
        "A lone \ud800 surrogate is here, and there \udfff too."
    )
    assert any("\ufffd" in text for text in seen)
    assert "\ud800" in units[0].model_text


def test_no_time_limit_of_nltk(
    monkeypatch: pytest.MonkeyPatch, by_words: ReferenceSegmenter
) -> None:
    redos = pytest.importorskip("nltk.redos", reason="this NLTK has no time limit")
    monkeypatch.setattr(redos, "DEFAULT_TIMEOUT", 1e-6)
    text = "It was so, said he. " * 5000
    with pytest.raises(TimeoutError):
        list(PunktLanguageVars().period_context_re().finditer(text))
    rules = by_words._sentence_spans.__self__._lang_vars  # type: ignore[attr-defined]
    assert len(list(rules.period_context_re().finditer(text))) == 4999


def test_a_word_of_a_megabyte_takes_no_longer_than_it_must(make: Callable) -> None:
    text = "Stop! " + "!?" * 250_000 + " Then go on."
    assert_exact(text, make(len).segment(text), reads_all=False)


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No sentence model on this machine, and a network that may be used."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(punkt, "_parameters", lambda: None)
    punkt.load_sentence_tokenizer.cache_clear()
    yield monkeypatch
    # no other test gets what this one loaded
    punkt.load_sentence_tokenizer.cache_clear()


@pytest.mark.parametrize(
    "forbidden_by", ["argument", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"]
)
def test_nothing_is_downloaded_where_it_is_forbidden(
    nothing_installed: pytest.MonkeyPatch, forbidden_by: str
) -> None:
    if forbidden_by != "argument":
        nothing_installed.setenv(forbidden_by, "1")
    asked: list[str] = []
    nothing_installed.setattr("nltk.download", lambda name, **_: asked.append(name))
    with pytest.raises(
        FileNotFoundError, match=r"downloads are off.*nltk\.downloader punkt_tab"
    ) as caught:
        ReferenceSegmenter(words, local_files_only=forbidden_by == "argument")
    assert "\n" not in str(caught.value)
    assert asked == []


@pytest.mark.usefixtures("nothing_installed")
def test_a_failed_download_is_silent_and_a_clear_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(
        FileNotFoundError, match="its download failed"
    ):  # sockets are blocked
        ReferenceSegmenter(words)
    assert capfd.readouterr() == ("", "")


def test_the_model_in_nltk_s_data_path_is_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    punkt.load_sentence_tokenizer.cache_clear()
    folder = tmp_path / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "ortho_context.tab"):
        (folder / name).write_text("", encoding="utf-8")
    (folder / "abbrev_types.txt").write_text("qux\n", encoding="utf-8")
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    text = "He saw the qux. Then he left."
    assert (
        len(
            list(ReferenceSegmenter(words, local_files_only=True)._sentence_spans(text))
        )
        == 1
    )
    punkt.load_sentence_tokenizer.cache_clear()


def test_a_download_is_used(request: pytest.FixtureRequest) -> None:
    bundled = punkt._parameters()
    if bundled is None:
        pytest.skip("needs the sentence model, as llama-index-core has it")
    patch = request.getfixturevalue("nothing_installed")
    answers = [None, bundled]
    patch.setattr(punkt, "_parameters", lambda: answers.pop(0))
    asked: list[str] = []
    patch.setattr("nltk.download", lambda name, **_: asked.append(name))
    assert ReferenceSegmenter(words).segment("One. Two.")
    assert asked == ["punkt_tab"]


@pytest.mark.slow
def test_the_bundled_model_is_found_without_importing_llama_index(
    make: Callable,
) -> None:
    import subprocess
    import sys

    program = (
        "import sys; from spscanner_rag.text.reference_segmentation import"
        " ReferenceSegmenter as S;S(len, True).segment('Hi.');"
        " sys.exit('llama_index.core' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_looking_words_up_leaves_the_model_as_it_was(
    by_words: ReferenceSegmenter,
) -> None:
    tokenizer = by_words._sentence_spans.__self__  # type: ignore[attr-defined]
    before = len(tokenizer._params.ortho_context)
    by_words.segment(" ".join(f"Unheard{number}. Of{number}" for number in range(500)))
    assert len(tokenizer._params.ortho_context) == before


def test_the_copy_of_llama_index_is_looked_for_only_if_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    spec = ModuleSpec("llama_index.core", None, origin=str(tmp_path / "__init__.py"))
    for found, folders in (
        (missing, []),
        (lambda name: None, []),
        (lambda name: spec, [str(tmp_path / "_static" / "nltk_cache")]),
    ):
        monkeypatch.setattr("importlib.util.find_spec", found)
        assert punkt._llama_index_folders() == folders
