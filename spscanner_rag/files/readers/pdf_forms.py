"""What was entered in the form fields of a PDF's page, from PDFium."""

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from spscanner_rag.files.readers.text_builder import readable

_MOST_FIELDS = 1_000  # annotations read per page, form fields included
_MOST_CHOICES = 1_000  # of a list box
_LONGEST_VALUE = 10_000  # characters
# A note, and marks of a text to which a note may belong: of PDFium's FPDF_ANNOT.
_COMMENT_SUBTYPES = frozenset((1, 9, 10, 11, 12, 14))


class PageForm(NamedTuple):
    """The form fields of a page, and text annotations on it."""

    values: list[str]
    n_choices_left_out: int  # that lists offer and the values do not name
    n_comments: int  # which are left out
    n_unread: int  # annotations after the first `_MOST_FIELDS`


class _Field(NamedTuple):
    text: str
    n_choices_left_out: int = 0
    is_comment: bool = False


def page_form(form: Any, page: Any) -> PageForm:  # noqa: ANN401 - of pypdfium2
    """What was entered in the form fields of a page, and text annotations on it.

    A field is "name: value". A list box also has all that it offers, since viewers show
    it. A list that drops down shows its choice alone, so its others are only counted.
    """
    from pypdfium2 import raw

    values: dict[str, None] = {}
    n_choices = 0
    n_comments = 0
    n_fields = raw.FPDFPage_GetAnnotCount(page)
    for number in range(min(n_fields, _MOST_FIELDS)):
        if annotation := raw.FPDFPage_GetAnnot(page, number):
            field = _field(raw, form, annotation)
            values[readable(field.text)] = None
            n_choices += field.n_choices_left_out
            n_comments += field.is_comment
            raw.FPDFPage_CloseAnnot(annotation)
    n_unread = max(n_fields - _MOST_FIELDS, 0)
    return PageForm(list(filter(None, values)), n_choices, n_comments, n_unread)


def _field(
    raw: Any,  # noqa: ANN401 - of pypdfium2
    form: Any,  # noqa: ANN401
    annotation: Any,  # noqa: ANN401
) -> _Field:
    def annotation_text(key: bytes) -> str:
        return _string(
            lambda *buffer: raw.FPDFAnnot_GetStringValue(annotation, key, *buffer)
        )

    def of_form(read_into: Callable[..., int]) -> str:
        return _string(lambda *buffer: read_into(form, annotation, *buffer))

    subtype = raw.FPDFAnnot_GetSubtype(annotation)
    if subtype == raw.FPDF_ANNOT_FREETEXT:
        return _Field(annotation_text(b"Contents"))
    if subtype in _COMMENT_SUBTYPES:
        return _Field("", is_comment=bool(annotation_text(b"Contents")))
    kind = (
        raw.FPDFAnnot_GetFormFieldType(form, annotation)
        if form
        else raw.FPDF_FORMFIELD_SIGNATURE
    )
    if subtype != raw.FPDF_ANNOT_WIDGET or kind == raw.FPDF_FORMFIELD_SIGNATURE:
        return _Field("")
    if kind in (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON):
        state = annotation_text(b"AS")
        value = "" if state == "Off" else state
    else:
        value = of_form(raw.FPDFAnnot_GetFormFieldValue)
    name = of_form(raw.FPDFAnnot_GetFormFieldAlternateName) or of_form(
        raw.FPDFAnnot_GetFormFieldName
    )
    shown = f"{name}: {value}" if name and value else value
    if kind == raw.FPDF_FORMFIELD_LISTBOX:
        return _list_box(shown or name, *_choices(raw, form, annotation))
    if kind == raw.FPDF_FORMFIELD_COMBOBOX:
        choices, n_unread = _choices(raw, form, annotation)
        n_others = sum(choice not in ("", value) for choice in choices)
        return _Field(shown, n_others + n_unread)
    return _Field(shown)


def _choices(
    raw: Any,  # noqa: ANN401 - of pypdfium2
    form: Any,  # noqa: ANN401
    annotation: Any,  # noqa: ANN401
) -> tuple[list[str], int]:
    """What a list offers, and how many more choices than are read."""

    def choice(number: int) -> str:
        return _string(
            lambda *buffer: raw.FPDFAnnot_GetOptionLabel(
                form, annotation, number, *buffer
            )
        )

    count = raw.FPDFAnnot_GetOptionCount(form, annotation)
    n_read = max(min(count, _MOST_CHOICES), 0)
    return [choice(number) for number in range(n_read)], max(count - n_read, 0)


def _list_box(shown: str, choices: list[str], n_unread: int) -> _Field:
    """What a list box shows: its name, what is chosen, and what else may be."""
    listed: list[str] = []
    n_characters = 0
    for choice in filter(None, choices):
        n_characters += len(choice) + len(", ")
        if n_characters > _LONGEST_VALUE:
            n_unread += 1
        else:
            listed.append(choice)
    if not listed:
        return _Field(shown, n_unread)
    return _Field(f"{shown} (choices: {', '.join(listed)})".strip(), n_unread)


def _string(read_into: Callable[..., int]) -> str:
    """Read a text from PDFium, which first returns its length.

    One line of at most `_LONGEST_VALUE` characters.
    """
    from pypdfium2.raw import FPDF_WCHAR

    length = read_into(None, 0)  # in bytes, with the final zero
    buffer = ctypes.create_string_buffer(length)
    read_into(ctypes.cast(buffer, ctypes.POINTER(FPDF_WCHAR)), length)
    text = buffer.raw[: max(0, length - 2)].decode("utf-16-le", "replace")
    return " ".join(text.split())[:_LONGEST_VALUE]
