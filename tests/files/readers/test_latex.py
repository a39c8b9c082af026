import pytest
from hypothesis import given, settings

from tests.small_files import assert_all_read, texts_of_words

pytest.importorskip("pylatexenc", reason="the extra files is not installed")

from spscanner_rag.files.readers import latex
from spscanner_rag.files.readers.latex import read_latex

PAPER = r"""\documentclass{article} \newcommand{\hidden}[1]{#1}
\title{On \emph{Peace}}
\begin{document}\maketitle
\section{Signing}\label{s}
The \textbf{keeper} signed---it \cite{raft} at 50\% of $\alpha$.\footnote{In a note.}
J\"urgen \& co. \mymacro{unknown}

\begin{enumerate}\item Rope\item Sail\end{enumerate}
\begin{tabular}{l|r}\hline Part & Price \\ \hline Rope & 12 \\ Sail & 30\end{tabular}
\begin{verbatim}
x = 1
\end{verbatim}
\input{other} \includegraphics{a.png}
\end{document}"""


def test_a_paper_as_its_pages_show_it() -> None:
    document = read_latex(PAPER.encode())
    assert document.text == (
        "On Peace\n\nSigning\n\nThe keeper signed—it [raft] at 50% of α.[1]\n"
        "Jürgen & co. unknown\n\n[1] In a note.\n\n1. Rope\n2. Sail\n\n"
        "Part | Price\nRope | 12\nSail | 30\n\nx = 1"
    )
    where = document.headings(document.text.index("keeper"))
    assert where == ("On Peace", "Signing")
    assert document.notes == (
        "files that it inputs are not read (1)",
        "pictures are left out (1)",
    )


@given(texts_of_words(min_size=1, max_size=5))
@settings(max_examples=10, deadline=None)
def test_every_word_is_in_a_unit(texts: list[str]) -> None:
    parts: list[str] = []
    for text in texts:
        parts.append(rf"\section{{{text}}} {text} \unknown{{{text}}} \emph{{{text}}}")
        parts.append(rf"\begin{{itemize}}\item {text} \end{{itemize}}")
        parts.append(rf"\begin{{strange}}{text}\end{{strange}}\footnote{{{text}}}")
    assert_all_read(read_latex("\n\n".join(parts).encode()), texts * 7)


@pytest.mark.parametrize(
    "data", [b"{" * 10**5, b"\\emph{" * 20_000, b"\\begin{a}" * 5_000]
)
def test_what_cannot_be_parsed_is_read_as_text(data: bytes) -> None:
    document = read_latex(data)
    assert document.text == data.decode()
    assert "cannot be parsed" in document.notes[0]


def body_of(body: str) -> str:
    """What is shown of the body of a document."""
    data = rf"\documentclass{{article}}\begin{{document}}{body}\end{{document}}"
    return read_latex(data.encode()).text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"See \ref{s}, \citep{a,b} and \url{http://x.example/a_b}.", None),
        (r"one\\two\newline three", "one\ntwo\nthree"),
        ("one % why?\ntwo", "one two"),
        ("one\n\ntwo\\par three", "one\n\ntwo\n\nthree"),
        (r"\href{http://x.example}{here} \emph{there}", "here there"),
        (r"\begin{itemize}\item a\item[b)] c\end{itemize}", "- a\nb) c"),
        (r"\begin{quote}{It rained.}\end{quote}", "It rained."),
        (r"\begin{equation}a = b\end{equation} so \(c\)", "a = b\n\nso c"),
    ],
)
def test_macros_and_environments(body: str, text: str | None) -> None:
    shown = body_of(body)
    if text is None:
        assert shown == "See [s], [a,b] and http://x.example/a_b."
    else:
        assert shown == text


@pytest.mark.parametrize("options", ["", "[p. 3]", "[see][p. 3]"])
@pytest.mark.parametrize(
    "macro", ["cite", "citep", "citet", "citet*", "parencite", "textcite", "autocite"]
)
def test_a_citation_is_shown_by_its_keys(macro: str, options: str) -> None:
    assert body_of(rf"It \{macro}{options}{{a,b}} rained.") == "It [a,b] rained."


def test_a_source_that_is_only_listed_is_not_shown() -> None:
    assert body_of(r"It rained.\nocite{a}") == "It rained."


def test_the_title_before_the_document_is_shown_and_comments_are_counted() -> None:
    data = rb"\author{Ann} % draft" + b"\n" + rb"\begin{document}A % why"
    document = read_latex(data + b"\n" + rb"\end{document} after")
    assert "A" in document.text
    assert "after" not in document.text
    assert document.notes == ("comments are left out (1)",)


def test_what_cannot_be_parsed_is_read_section_by_section(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(latex, "_MOST_TOKENS", 0)
    monkeypatch.setattr(latex, "_FREE_TOKENS", 24)
    source = (
        "\\begin{document}\n\\section{Fire}\nIt \\emph{burned}.\n"
        "\\section{Rain}\n" + "{\\it It rained.}" * 20 + "\n\\end{document}"
    )
    document = read_latex(source.encode())
    assert "It burned." in document.text
    assert document.text.count("It rained.") == 20
    assert document.headings(document.text.index("burned")) == ("Fire",)
    assert "section by section, 1 of them as plain text" in document.notes[-1]
