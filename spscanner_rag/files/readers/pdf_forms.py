"""What was entered in the form fields of a PDF's page, from PDFium."""

import ctypes
from collections.abc import Callable
from typing import Any

from spscanner_rag.files.readers.text_builder import readable

_MOST_FIELDS = 1_000  # annotations read per page, form fields included
_MOST_CHOICES = 1_000  # of a list box
_LONGEST_VALUE = 10_000  # characters


def form_values(form: Any, page: Any) -> list[str]:  # noqa: ANN401 - of pypdfium2
    """What was entered in the form fields of a page, and text annotations on it.

    A field is "name: value". A list box also has all that it offers, since viewers show
    it.
    """
    from pypdfium2 import raw

    values: dict[str, None] = {}
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_FIELDS)):
        if annotation := raw.FPDFPage_GetAnnot(page, number):
            values[readable(_field(raw, form, annotation))] = None
            raw.FPDFPage_CloseAnnot(annotation)
    return list(filter(None, values))


def _field(raw: Any, form: Any, annotation: Any) -> str:  # noqa: ANN401 - of pypdfium2
    def annotation_text(key: bytes) -> str:
        return _string(
            lambda *buffer: raw.FPDFAnnot_GetStringValue(annotation, key, *buffer)
        )

    def of_form(read_into: Callable[..., int]) -> str:
        return _string(lambda *buffer: read_into(form, annotation, *buffer))

    subtype = raw.FPDFAnnot_GetSubtype(annotation)
    if subtype == raw.FPDF_ANNOT_FREETEXT:
        return annotation_text(b"Contents")
    kind = (
        raw.FPDFAnnot_GetFormFieldType(form, annotation)
        if form
        else raw.FPDF_FORMFIELD_SIGNATURE
    )
    if subtype != raw.FPDF_ANNOT_WIDGET or kind == raw.FPDF_FORMFIELD_SIGNATURE:
        return ""
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
        return _with_choices(shown or name, _choices(raw, form, annotation))
    return shown


def _choices(raw: Any, form: Any, annotation: Any) -> list[str]:  # noqa: ANN401
    """What a list box offers, all of which is on the page."""

    def choice(number: int) -> str:
        return _string(
            lambda *buffer: raw.FPDFAnnot_GetOptionLabel(
                form, annotation, number, *buffer
            )
        )

    count = raw.FPDFAnnot_GetOptionCount(form, annotation)
    return [choice(number) for number in range(min(count, _MOST_CHOICES))]


def _with_choices(shown: str, choices: list[str]) -> str:
    """What a list box shows: its name, what is chosen, and what else may be."""
    listed = ", ".join(filter(None, choices))[:_LONGEST_VALUE]
    return f"{shown} (choices: {listed})".strip() if listed else shown


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
