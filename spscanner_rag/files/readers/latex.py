r"""Reads LaTeX as its pages show it: headings, paragraphs, items, tables, formulas.

pylatexenc parses it. No macro is run, no file that it inputs is opened, and definitions
of macros are not applied.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from spscanner_rag.files.documents import TextFile
from spscanner_rag.files.readers.notation import struck
from spscanner_rag.files.readers.text_builder import (
    Cell,
    Row,
    TextBuilder,
    add_table,
    decoded,
)
from spscanner_rag.system.install_hints import import_extra

_LEVELS = {
    "part": 1,
    "chapter": 1,
    "section": 2,
    "subsection": 3,
    "subsubsection": 4,
    "paragraph": 5,
    "subparagraph": 6,
}
_UNSEEN = {  # macros that show nothing, with the arguments that they take
    "label": "{",
    "hspace": "*{",
    "vspace": "*{",
    "setlength": "{{",
    "addtolength": "{{",
    "setcounter": "{{",
    "addtocounter": "{{",
    "pagestyle": "{",
    "thispagestyle": "{",
    "pagenumbering": "{",
    "bibliographystyle": "{",
    "bibliography": "{",
    "addbibresource": "[{",
    "hypersetup": "{",
    "geometry": "{",
    "definecolor": "{{{",
    "color": "{",
    "usepackage": "[{",
    "documentclass": "[{",
    "newcommand": "*{[[{",
    "renewcommand": "*{[[{",
    "providecommand": "*{[[{",
    "newenvironment": "*{[[{{",
    "newtheorem": "*{[{[",
    "DeclareMathOperator": "*{{",
    "graphicspath": "{",
    "cline": "{",
    "cmidrule": "[{",
    "vskip": "",
    "def": "",
}
_REFERENCES = {"ref": "{", "eqref": "{", "pageref": "{", "autoref": "{", "cref": "{"}
_CITATIONS = dict.fromkeys(("cite", "citep", "citet"), "*[[{")
_CITATIONS |= dict.fromkeys(("parencite", "textcite", "autocite"), "*[[{")  # biblatex
_CITATIONS["nocite"] = "{"
_INPUTS = {"input": "{", "include": "{", "subfile": "{"}
_SHOWN = {"title": "[{", "author": "[{", "date": "{", "caption": "*[{"}
_FOOTNOTES = {"footnote": "[{", "thanks": "{", "footnotetext": "[{"}
_LINKS = {"href": "{{", "url": "{"}
_LAST_SHOWN = {  # macros whose last argument alone is shown
    "multicolumn": "{{{",
    "multirow": "[{[{[{",
    "textcolor": "[{{",
    "colorbox": "{{",
    "fcolorbox": "{{{",
    "raisebox": "{[[{",
    "parbox": "[[[{{",
    "resizebox": "*{{{",
    "scalebox": "{[{",
    "rotatebox": "[{{",
    "makebox": "[[{",
    "framebox": "[[{",
    "hyperref": "[{",
    "texorpdfstring": "{{",
    "foreignlanguage": "{{",
    **_LINKS,
}
_STRUCK = {"sout": "{", "st": "{", "xout": "{"}
_ENVIRONMENTS = {  # with arguments that show nothing
    "minipage": "[[[{",
    "thebibliography": "{",
    "multicols": "{",
    "wrapfigure": "[{[{",
    "wraptable": "[{[{",
    "adjustbox": "{",
    "subfigure": "[{",
    "subtable": "[{",
    "column": "[{",
    "columns": "[",
    "spacing": "{",
    "tcolorbox": "[",
    "algorithm": "[",
    "algorithmic": "[",
    "figure": "[",
    "figure*": "[",
    "table": "[",
    "table*": "[",
    "sidewaystable": "[",
    "sidewaysfigure": "[",
}
_COMMENTS = {"comment"}  # environments
# Rules of tables, whose arguments may be in parentheses, and titles of slides.
_RULE = re.compile(r"\\cmidrule\s*(?:\[[^\[\]]*\])?\s*(?:\([^()]*\))?\s*\{[\d-]+\}")
_FRAME = re.compile(r"\\begin\{frame\}(?:<[^<>]*>)?(?:\[[^\[\]]*\])?[ \t]*\{([^{}]*)\}")
# Definitions, which are not applied. One may open an environment that another closes.
_ARGUMENT = (
    r"\{(?:[^{}]{1,500}+|\{(?:[^{}]{1,500}+|\{[^{}]{0,500}\}){0,60}+\}){0,60}+\}"
)
_GAP = r"\s*(?:%[^\n]{0,200}\n\s*)?"
_DEFINITION = re.compile(
    r"\\(?:(?:re)?newcommand|providecommand)\*?\s*(?:\{\\\w+\}|\\\w+)"
    rf"(?:\[[^\[\]\n]{{0,80}}\]){{0,2}}{_GAP}{_ARGUMENT}"
    r"|\\(?:re)?newenvironment\*?\s*\{\w+\*?\}"
    rf"(?:\[[^\[\]\n]{{0,80}}\]){{0,2}}{_GAP}{_ARGUMENT}{_GAP}{_ARGUMENT}"
    rf"|\\def\s*\\\w+(?:#\d){{0,9}}{_ARGUMENT}"
)
_FRAME_TITLE = "frametitle"
_SECTION = re.compile(r"(?m)(?=^\\(?:part|chapter|(?:sub)*section)\b)")
_BEGIN_DOCUMENT = "\\begin{document}"
_END_DOCUMENT = "\\end{document}"
_MOST_TOKENS = 4  # for each character; other documents need at most one
_FREE_TOKENS = 10_000
_BREAKS = {"par", "newpage", "clearpage", "maketitle"}
_ACCENTS = tuple("'`\"^~=.")
_FAULTS = (IndexError, AttributeError, TypeError, ValueError, KeyError)
_CODE = {"verbatim", "lstlisting", "minted", "Verbatim", "alltt"}
_TABLES = {"tabular", "tabular*", "tabularx", "longtable", "array", "tabulary"}
_FORMULAS = {"equation", "align", "gather", "multline", "eqnarray", "displaymath"}
_FORMULAS |= {"flalign", "alignat", "math", "split"}
_RULES = {"hline", "toprule", "midrule", "bottomrule", "endhead", "endfoot"}
_RULES |= {"endfirsthead", "endlastfoot", "cline", "addlinespace"}
_THEOREMS = {"theorem", "lemma", "proposition", "corollary", "definition", "proof"}
_THEOREMS |= {"remark", "example", "conjecture", "claim"}
_EMPTY_LINE = re.compile(r"\n[ \t]*\n\s*")
_WORK = 8  # pylatexenc is slow


def latex_work(data: bytes) -> int:
    """Return the bytes that LaTeX counts for."""
    return _WORK * len(data)


def read_latex(data: bytes) -> TextFile:
    """Read a LaTeX file, or read it as plain text if it cannot be parsed.

    ``ValueError`` if it is not UTF-8 or UTF-16, ``ImportError`` without pylatexenc.
    """
    walker = import_extra("pylatexenc.latexwalker", "reading LaTeX", "files")
    source = _DEFINITION.sub("", decoded(data))
    source = _RULE.sub("", source)
    source = _FRAME.sub(rf"\\begin{{frame}}\\{_FRAME_TITLE}{{\1}}", source)
    try:
        document = _Latex(source)
        document.add_file(_nodes(walker, source))
        return document.text()
    except (walker.LatexWalkerError, RecursionError, _TooManyTokensError) as error:
        return _read_by_sections(walker, source, error)


def _nodes(walker: Any, source: str) -> Sequence[Any]:  # noqa: ANN401 - the package
    """The nodes of a source, for which its parser may read each token a few times.

    Where a brace or an environment is not closed, it may read what follows again and
    again.
    """
    most_tokens = _MOST_TOKENS * len(source) + _FREE_TOKENS

    class Walker(walker.LatexWalker):  # type: ignore[misc]
        n_tokens = 0

        def get_token(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            self.n_tokens += 1
            if self.n_tokens > most_tokens:
                raise _TooManyTokensError("what it opens is not closed")
            return super().get_token(*arguments, **options)

    context = _context(walker)
    parser = Walker(source, latex_context=context, tolerant_parsing=True)
    nodes: Sequence[Any] = parser.get_latex_nodes()[0]
    return nodes


def _read_by_sections(walker: Any, source: str, error: Exception) -> TextFile:  # noqa: ANN401
    """Read each section by itself, and those that cannot be parsed as plain text."""
    body = source.partition(_BEGIN_DOCUMENT)[2] or source
    built = TextBuilder()
    unread = 0
    for section in _SECTION.split(body.partition(_END_DOCUMENT)[0]):
        if not section.strip():
            continue
        try:
            part = _Latex(section)
            part.add_file(_nodes(walker, section))
            built.document(part.text())
        except (walker.LatexWalkerError, RecursionError, _TooManyTokensError):
            unread += 1
            built.paragraph(section.strip())
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
    built.note(
        f"it cannot be parsed whole ({reason}), and is read section by section,"
        f" {unread:,} of them as plain text"
    )
    return built.converted()


def _context(walker: Any) -> Any:  # noqa: ANN401 - the package's
    from pylatexenc.macrospec import EnvironmentSpec, MacroSpec

    context = walker.get_default_latex_context_db()
    arguments = {**_UNSEEN, **_REFERENCES, **_INPUTS, **_SHOWN}
    arguments |= {**_FOOTNOTES, **_LAST_SHOWN, **_CITATIONS, **_STRUCK}
    arguments |= {_FRAME_TITLE: "[{", "bibitem": "[{"}
    macros = [MacroSpec(name, known) for name, known in arguments.items()]
    environments = [
        EnvironmentSpec(name, known) for name, known in _ENVIRONMENTS.items()
    ]
    context.add_context_category(
        "arguments", macros=macros, environments=environments, prepend=True
    )
    return context


class _TooManyTokensError(Exception):
    """The parser reads the same text again and again."""


class _Latex:
    """Builds the text of a file, node by node."""

    def __init__(self, source: str) -> None:
        from pylatexenc.latex2text import LatexNodes2Text

        self._source = source
        self._built = TextBuilder()
        self._to_text = LatexNodes2Text(math_mode="text", keep_comments=False)
        self._parts: list[str] = []  # of the paragraph
        self._marker = ""  # before the next paragraph, in a list
        self._numbers: list[int] = []  # of the last item of each list; -1 for bullets
        self._notes: list[str] = []  # footnotes of the paragraph
        self._footnotes = 0
        self._left_out: dict[str, int] = {}

    def text(self) -> TextFile:
        """The text of the file."""
        self._flush()
        for what, count in self._left_out.items():
            self._built.note(f"{what} ({count:,})")
        return self._built.converted()

    def add_file(self, nodes: Sequence[Any]) -> None:
        """Add the body of a document, with the title before it."""
        body = None
        for node in nodes:
            if _environment(node) == "document":
                body = node
        if body is None:
            self._add(nodes)
            return
        for node in nodes:
            if _macro(node) in _SHOWN:
                self._add([node])
        self._add(body.nodelist)

    def _add(self, nodes: Sequence[Any]) -> None:
        for node in nodes:
            if node is not None:
                self._add_node(node)

    def _add_node(self, node: Any) -> None:  # noqa: ANN401 - the package's
        kind = type(node).__name__
        if kind == "LatexCharsNode":
            self._add_characters(node.chars)
        elif kind == "LatexCommentNode":
            self._count("comments are left out")
            self._parts.append("\n" if "\n\n" in node.comment_post_space else " ")
        elif kind == "LatexMacroNode":
            self._add_macro(node)
        elif kind == "LatexEnvironmentNode":
            self._add_environment(node)
        elif kind == "LatexGroupNode":
            self._add(node.nodelist)
        elif kind == "LatexSpecialsNode" and node.specials_chars.startswith("\n"):
            self._flush()
        else:
            self._parts.append(self._plain(node))

    def _add_characters(self, text: str) -> None:
        paragraphs = _EMPTY_LINE.split(text)
        for number, paragraph in enumerate(paragraphs):
            if number:
                self._flush()
            self._parts.append(paragraph)

    def _add_macro(self, node: Any) -> None:  # noqa: ANN401
        name = node.macroname
        if name in _LEVELS or name in ("title", _FRAME_TITLE):
            self._flush()
            level = _LEVELS.get(name, 2 if name == _FRAME_TITLE else 1)
            self._built.heading(self._inner(_last_argument(node)), level)
        elif name in _SHOWN:
            self._flush()
            self._add([_last_argument(node)])
            self._flush()
        elif name == "item":
            self._begin_item(node)
        elif name == "bibitem":
            self._flush()
            label = self._inner(_arguments(node)[0]) if _arguments(node) else ""
            self._marker = f"[{label}] "
        elif name in _BREAKS:
            self._flush()
        elif name not in _UNSEEN:
            self._add_inline(node)

    def _add_inline(self, node: Any) -> None:  # noqa: ANN401
        """Add a macro that is inside a paragraph."""
        name = node.macroname
        if name in _FOOTNOTES:
            self._add_footnote(node)
        elif name in _INPUTS:
            self._count("files that it inputs are not read")
        elif name == "includegraphics":
            self._count("pictures are left out")
        elif name in _REFERENCES or name in _CITATIONS:
            self._add_reference(node)
        elif name == "url":
            self._parts.append(self._verbatim_inside(_last_argument(node)))
        elif name in ("\\", "newline"):
            self._parts.append("\n" + node.macro_post_space)
        else:
            self._add_unknown(node)

    def _add_unknown(self, node: Any) -> None:  # noqa: ANN401
        """Add a symbol, or the arguments of a macro such as one for bold text."""
        arguments = _arguments(node)
        if arguments and not node.macroname.startswith(_ACCENTS):
            if node.macroname in _LAST_SHOWN:
                arguments = arguments[-1:]
            text = " ".join(map(self._inner, arguments))
            if node.macroname in _STRUCK:
                text = struck(text)
            self._parts.append(text)
        else:
            space = " " if node.macro_post_space and not arguments else ""
            self._parts.append(self._plain(node) + space)

    def _plain(self, node: Any) -> str:  # noqa: ANN401
        """The text of a symbol, an accent or a formula, or what is in the file."""
        try:
            return str(self._to_text.nodelist_to_text([node]))
        except _FAULTS:  # of pylatexenc, where arguments are missing
            return self._verbatim(node)

    def _add_reference(self, node: Any) -> None:  # noqa: ANN401
        keys = self._verbatim_inside(_last_argument(node))
        if node.macroname != "nocite":
            self._parts.append(f"[{keys}]")

    def _add_footnote(self, node: Any) -> None:  # noqa: ANN401
        self._footnotes += 1
        mark = f"[{self._footnotes}]"
        self._parts.append(mark)
        self._notes.append(f"{mark} {self._inner(_last_argument(node))}")

    def _begin_item(self, node: Any) -> None:  # noqa: ANN401
        self._flush()
        self._marker = "- "
        if self._numbers and self._numbers[-1] >= 0:
            self._numbers[-1] += 1
            self._marker = f"{self._numbers[-1]}. "
        label = "".join(map(self._inner, _arguments(node)))
        if label:
            self._marker = f"{label} "

    def _add_environment(self, node: Any) -> None:  # noqa: ANN401
        name = node.environmentname.removesuffix("*")
        if name in _COMMENTS:
            self._count("comments are left out")
        elif name in _CODE:
            self._flush()
            self._built.fence(self._inside(node))
        elif node.environmentname in _TABLES:
            self._flush()
            self._add_table(node)
        elif name in _FORMULAS:
            self._flush()
            self._parts.append(self._plain(node).replace("\n", " "))
            self._flush()
        else:
            self._flush()
            is_list = name in ("itemize", "enumerate", "description")
            if is_list:
                self._numbers.append(0 if name == "enumerate" else -1)
            if name in _THEOREMS and _arguments(node):
                self._parts.append(f"({self._inner(_last_argument(node))}) ")
            self._add(node.nodelist)
            self._flush()
            if is_list:
                self._numbers.pop()

    def _add_table(self, node: Any) -> None:  # noqa: ANN401
        rows: list[Row] = []
        for cells in _cells(node.nodelist):
            texts = [self._inner_of(cell) for cell in cells]
            if any(texts):
                rows.append(Row([Cell(text) for text in texts], strong=False))
        add_table(self._built, rows)

    def _inner(self, node: Any) -> str:  # noqa: ANN401
        return "" if node is None else self._inner_of([node])

    def _inner_of(self, nodes: Sequence[Any]) -> str:
        """The text of nodes on one line."""
        parts = self._parts
        self._parts = []
        for node in nodes:
            if type(node).__name__ == "LatexCharsNode":
                self._parts.append(node.chars)
            elif type(node).__name__ == "LatexGroupNode":
                self._parts.append(self._inner_of(node.nodelist))
            elif node is not None:
                self._add_node(node)
        text = " ".join("".join(self._parts).split())
        self._parts = parts
        return text

    def _verbatim(self, node: Any) -> str:  # noqa: ANN401
        return "" if node is None else self._source[node.pos : node.pos + node.len]

    def _verbatim_inside(self, node: Any) -> str:  # noqa: ANN401
        """What is in the braces of an argument."""
        return self._verbatim(node).removeprefix("{").removesuffix("}")

    def _inside(self, node: Any) -> str:  # noqa: ANN401
        """What is between the beginning and the end of an environment."""
        lines = self._verbatim(node).split("\n")
        return "\n".join(lines[1:-1]).rstrip()

    def _count(self, what: str) -> None:
        self._left_out[what] = self._left_out.get(what, 0) + 1

    def _flush(self) -> None:
        """Add the paragraph, and its footnotes after it."""
        lines = "".join(self._parts).split("\n")
        self._parts = []
        shown = [" ".join(line.split()) for line in lines]
        text = "\n".join(line for line in shown if line)
        notes = self._notes
        self._notes = []
        if text and self._marker:
            self._built.item(self._marker + text)
            self._marker = ""
        elif text:
            self._built.paragraph(text)
        for note in notes:
            self._built.paragraph(note)


def _environment(node: Any) -> str:  # noqa: ANN401
    return str(getattr(node, "environmentname", ""))


def _macro(node: Any) -> str:  # noqa: ANN401
    return str(getattr(node, "macroname", ""))


def _arguments(node: Any) -> list[Any]:  # noqa: ANN401
    arguments = getattr(node.nodeargd, "argnlist", None) or ()
    return [argument for argument in arguments if argument is not None]


def _last_argument(node: Any) -> Any:  # noqa: ANN401
    arguments = _arguments(node)
    return arguments[-1] if arguments else None


def _cells(nodes: Sequence[Any]) -> Iterator[list[list[Any]]]:
    """Yield the rows of a table, each as a list of cells, each a list of nodes."""
    cells: list[list[Any]] = [[]]
    for node in nodes:
        if getattr(node, "specials_chars", "") == "&":
            cells.append([])
        elif _macro(node) in ("\\", "tabularnewline"):
            yield cells
            cells = [[]]
        elif _macro(node) not in _RULES:
            cells[-1].append(node)
    yield cells
