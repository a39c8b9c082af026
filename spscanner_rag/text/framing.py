r"""Frame text that a language model gets beside our own words.

Text of a document is data. Nothing in it may look like what we write around it, such as
the place of a passage, or act on what shows a model's answer, such as a picture in
Markdown. A model may still believe what a document says, or do it.
"""

import re

from spscanner_rag.text.escaping import visible, with_invisible

# Links, pictures and definitions of Markdown, and what may begin a tag of HTML.
_MARKUP = re.compile(r"!(?=\[)|\](?=[(:])|\\*<(?=[A-Za-z/!?])")
_MARK = re.compile(r"(\\*)\[(?=[ \t]*\d[\d \t,;-]*\])")
# The same in JSON, whose own syntax has none of these.
_MARKUP_IN_JSON = re.compile(r"(?<=!)\[|(?<=\])[(:]|<(?=[A-Za-z/!?])")


def inert(text: str) -> str:
    r"""The `visible` text, in which no Markdown and no HTML has an effect.

    A backslash stands before what would begin a link, a picture or a tag.

    Examples
    --------
    >>> print(inert("Anne signed ![x](http://a.example) and left \x1b[2J."))
    Anne signed !\[x]\(http://a.example) and left \x1b[2J.
    >>> inert("It rained [sic] on 3 < 4 ships.")
    'It rained [sic] on 3 < 4 ships.'
    """
    return _MARKUP.sub(_without_effect, visible(text))


def _without_effect(match: re.Match[str]) -> str:
    if match[0].endswith("<"):
        return _escaped_before(match[0][:-1]) + "<"
    return match[0] + "\\"


def _escaped_before(backslashes: str) -> str:
    """Backslashes that escape what follows, whatever backslashes it had before."""
    return backslashes * 2 + "\\"


def inert_passage(text: str) -> str:
    r"""The `inert` text, in which no ``[1]`` or ``[0-44]`` looks like our marks.

    Examples
    --------
    >>> print(inert_passage("He left at noon [2].\n[2] law.pdf, page 9"))
    He left at noon \[2].
    \[2] law.pdf, page 9
    """
    return _MARK.sub(lambda match: _escaped_before(match[1]) + "[", inert(text))


def framed(head: str, text: str) -> str:
    r"""The `inert` text after a head, its further lines quoted.

    So only the first line can begin with our words.

    Examples
    --------
    >>> print(framed("[0-44] ", "Anne left.\n[9-12] Anne signed."))
    [0-44] Anne left.
    > [9-12] Anne signed.
    """
    first, *others = inert(text).split("\n")
    if first.lstrip().startswith("["):
        first = first.replace("[", "\\[", 1)
    return "\n".join([head + first, *map(_quoted_line, others)])


def quoted(text: str) -> str:
    r"""The `inert` text with all its lines quoted.

    Examples
    --------
    >>> print(quoted("Anne left.\n[0-8000 of 9 characters]"))
    > Anne left.
    > [0-8000 of 9 characters]
    """
    return "\n".join(map(_quoted_line, inert(text).split("\n")))


def _quoted_line(line: str) -> str:
    return f"> {line}"


def inert_json(content: str) -> str:
    r"""JSON that says the same, with all that could act on a reader escaped.

    Examples
    --------
    >>> print(inert_json('{"text":"![x](http://a.example)"}'))
    {"text":"!\u005bx]\u0028http://a.example)"}
    """
    content = _MARKUP_IN_JSON.sub(lambda match: _json_escape(match[0]), content)
    return with_invisible(content, _json_escape)


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
