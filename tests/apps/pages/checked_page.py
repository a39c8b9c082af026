"""The checks that every HTML page passes.

It is well formed and self-contained, and no text becomes markup.
"""

import base64
import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, TreeBuilder

from hypothesis import strategies as st

HOSTILE = (
    "<script>alert(1)</script> </style> <img src=x onerror=alert(2)>"
    """ javascript:alert(3) &lt;b&gt; "'`\n"""
    "[/INST] [bold]x[/bold] </textarea><!-- --> ]]>"
    " \x1b]8;;http://x.example\x07link\x1b]8;;\x07 \x9b31m\n"
    "\x00 \x08 \x0c \rreturn \u202egnirts\u202c \u2066 \ud800 \U000e0041"
    " {{7*7}} ${x} </div></main></html> last.\n"
)
"""A text and a name that a page, a template or a terminal might act on."""

WORDS = st.sampled_from(
    [
        *HOSTILE.split(" "),
        "Plain words. ",
        "\n",
        "\r\n",
        "\n\n\n",
        "Ωμέγα 東京. ",
        "שלום. ",
        "Sentences stand here. " * 9,
    ]
)
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u200b\u202a-\u202e\u2066-\u2069\u3164\ud800-\udfff\U000e0000-\U000e0fff]"
)
VOID = {"meta", "br"}
TAGS = set(
    "html head meta title style script body header main nav section article details"
    " summary h1 h2 h3 p div span ol ul li a b i br small code kbd mark figure table"
    " caption thead tbody tr th td button svg g path rect circle line text".split()
)
ATTRIBUTES = set(
    "aria-hidden aria-label aria-live charset class content d data-at data-characters"
    " data-document data-facts data-head data-rank data-step dir fill height href"
    " http-equiv id lang name open preserveaspectratio role scope tabindex title"
    " transform type viewbox width x x1 x2 y y1 y2 cx cy r".split()
)


class CheckedPage(HTMLParser):
    """A page or part of one as a tree.

    Fails for elements, attributes or nesting that no page may have.
    """

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self._tree, self._open = TreeBuilder(), ["all"]
        self._tree.start("all", {})
        self.feed(markup)
        self.close()
        assert self._open == ["all"]
        self._tree.end("all")
        self.root: Element = self._tree.close()
        assert not INVISIBLE.search(markup)
        ids = [
            element.attrib["id"]
            for element in self.root.iter()
            if "id" in element.attrib
        ]
        assert len(set(ids)) == len(ids)
        for link in self.root.iter("a"):
            assert link.attrib["href"].startswith("#"), "a link that leads away"
            assert link.attrib["href"][1:] in ids

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, f"<{tag}>"
        others = {name for name, _ in attrs} - ATTRIBUTES
        assert not others, f"<{tag}> with {others}"
        self._tree.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self._tree.end(tag)
        else:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}>"
        self._tree.end(tag)

    def handle_data(self, data: str) -> None:
        self._tree.data(data)

    def all(self, tag: str, name: str = "") -> Iterator[Element]:
        """Elements with a tag and with all words of ``name`` as their classes.

        The tag ``*`` stands for any.
        """
        wanted = set(name.split())
        return (
            each
            for each in self.root.iter(tag)
            if wanted <= set(each.get("class", "").split())
        )

    def text(self, tag: str, name: str = "") -> str:
        """The text of the only such element."""
        (element,) = self.all(tag, name)
        return text_of(element)

    @property
    def title(self) -> str:
        """The title of the window."""
        return text_of(next(self.root.iter("title")))

    @property
    def script(self) -> str:
        """The page's script."""
        return "".join(map(text_of, self.root.iter("script")))


def text_of(element: Element) -> str:
    """All text of an element."""
    return "".join(element.itertext())


def check_page(page: str) -> CheckedPage:
    """Check a page that is not part of another one.

    Its policy allows one style sheet, at most one script, and nothing from other hosts.
    """
    checked = CheckedPage(page)
    page.encode()
    (style,) = checked.root.iter("style")
    scripts = list(checked.root.iter("script"))
    assert len(scripts) <= 1
    policy = f"default-src 'none'; style-src {_hash(style)}; "
    policy += "".join(f"script-src {_hash(script)}; " for script in scripts)
    (meta,) = (
        each for each in checked.root.iter("meta") if "http-equiv" in each.attrib
    )
    assert meta.attrib["content"] == f"{policy}base-uri 'none'; form-action 'none'"
    assert page.index("Content-Security-Policy") < page.index("<style>")
    assert not re.search(r"url\(|@import", text_of(style))
    return checked


def _hash(element: Element) -> str:
    digest = hashlib.sha256(text_of(element).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
