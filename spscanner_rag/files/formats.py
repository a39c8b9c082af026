"""The register of file formats.

Help texts, messages, the lists of the server and of the command line, and reading
follow from it. A format's reader is a module of `spscanner_rag.files.readers`.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import PurePath
from typing import Any, NamedTuple

_READERS = "spscanner_rag.files.readers"
_MIB = 2**20


class FileFormat(NamedTuple):
    """A format of files, and how it is read.

    A function is named as ``module:function``, relative to the folder of readers, so
    that its module is imported when it is first needed.
    """

    name: str  # in help texts and messages
    endings: tuple[str, ...]  # of file names, in lower case, the usual one first
    media_types: tuple[str, ...]
    most_bytes: int  # larger files are refused
    # data -> TextFile; with ``limits_itself``: data, seconds, check, progress, ocr
    reader: str
    # data -> whether its first bytes say that it is of this format; "" if none can
    recognizer: str = ""
    # data -> how many bytes reading takes work for; "" for the bytes of the file
    work: str = ""
    extra: str = ""  # the extra that the reader needs
    is_binary: bool = False  # a file with its ending must be recognized
    is_zip: bool = False
    is_listed: bool = True  # help texts and messages name it
    keeps_text: bool = False  # the text is the file's own, unchanged
    needs: tuple[str, ...] = ()  # modules of the extra, if it is read apart
    is_apart: bool = False  # even a small file is read in a separate process
    limits_itself: bool = False  # its reader takes a time limit, and reports pages

    def read(self, *arguments: object) -> Any:  # noqa: ANN401 - a TextFile
        """Call the reader."""
        return _function(self.reader)(*arguments)

    def recognizes(self, data: bytes) -> bool:
        """Return whether the first bytes of a file are certainly of this format."""
        return bool(self.recognizer) and bool(_function(self.recognizer)(data))

    def bytes_of_work(self, data: bytes) -> int:
        """Return how many bytes reading takes work for, such as unpacked ones."""
        return int(_function(self.work)(data)) if self.work else len(data)


def _package_of_xml(
    name: str,
    endings: tuple[str, ...],
    media_types: tuple[str, ...],
    reader: str,
    recognizer: str,
) -> FileFormat:
    """A ZIP archive of XML, whose unpacked parts are the work."""
    return FileFormat(
        name,
        endings,
        media_types,
        256 * _MIB,
        reader,
        recognizer,
        work="zip_parts:unpacked_bytes",
        extra="files",
        is_binary=True,
        is_zip=True,
    )


def _workbook(
    name: str, endings: tuple[str, ...], media_types: tuple[str, ...], recognizer: str
) -> FileFormat:
    """A workbook, which calamine reads in a process apart."""
    return FileFormat(
        name,
        endings,
        media_types,
        64 * _MIB,
        "spreadsheets:read_spreadsheet",
        recognizer,
        extra="files",
        is_binary=True,
        is_zip=True,
        needs=("python_calamine", "lxml"),
        is_apart=True,
    )


FORMATS: dict[str, FileFormat] = {
    file_format.name: file_format
    for file_format in (
        FileFormat(
            "text",
            (".txt", ".text"),
            ("text/plain",),
            256 * _MIB,
            "plain_text:read_text",
            keeps_text=True,
        ),
        FileFormat(
            "Markdown",
            (".md", ".markdown"),
            ("text/markdown",),
            32 * _MIB,
            "markdown:read_markdown",
            work="markdown:markdown_work",
            keeps_text=True,
        ),
        FileFormat(
            "HTML",
            (".html", ".htm", ".xhtml"),
            ("text/html", "application/xhtml+xml"),
            32 * _MIB,
            "html:read_html",
            recognizer="html:begins_as_html",
            extra="files",
        ),
        FileFormat(
            "PDF",
            (".pdf",),
            ("application/pdf",),
            256 * _MIB,
            "pdf:read_pdf",
            recognizer="pdf:begins_as_pdf",
            extra="files",
            is_binary=True,
            limits_itself=True,
        ),
        _package_of_xml(
            "DOCX",
            (".docx",),
            (
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            ),
            "docx:read_docx",
            "docx:is_docx",
        ),
        _workbook(
            "XLSX",
            (".xlsx", ".xlsm", ".xlsb", ".xls"),
            (
                "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
                "application/vnd.ms-excel",
            ),
            "spreadsheets:is_xlsx",
        ),
        _workbook(
            "ODS",
            (".ods",),
            ("application/vnd.oasis.opendocument.spreadsheet",),
            "spreadsheets:is_ods",
        ),
        _package_of_xml(
            "PPTX",
            (".pptx", ".pptm", ".ppsx"),
            (
                "application/vnd.openxmlformats-officedocument.presentationml"
                ".presentation",
            ),
            "slides:read_slides",
            "slides:is_pptx",
        ),
        _package_of_xml(
            "EPUB",
            (".epub",),
            ("application/epub+zip",),
            "epub:read_epub",
            "epub:is_epub",
        ),
        _package_of_xml(
            "ODT",
            (".odt", ".ott", ".odp"),
            (
                "application/vnd.oasis.opendocument.text",
                "application/vnd.oasis.opendocument.presentation",
            ),
            "odt:read_odt",
            "odt:is_odt",
        ),
        FileFormat(
            "RTF",
            (".rtf",),
            ("application/rtf", "text/rtf"),
            64 * _MIB,
            "rtf:read_rtf",
            recognizer="rtf:begins_as_rtf",
            is_binary=True,
        ),
        FileFormat(
            "EML",
            (".eml",),
            ("message/rfc822",),
            64 * _MIB,
            "mail:read_mail",
            work="mail:mail_work",
        ),
        FileFormat(
            "MSG",
            (".msg",),
            ("application/vnd.ms-outlook",),
            64 * _MIB,
            "outlook:read_msg",
            recognizer="outlook:is_msg",
            extra="files",
            is_binary=True,
            needs=("oxmsg", "lxml"),
            is_apart=True,
        ),
        FileFormat(
            "IPYNB",
            (".ipynb",),
            ("application/x-ipynb+json",),
            64 * _MIB,
            "notebook:read_notebook",
        ),
        FileFormat(
            "JSON",
            (".json", ".geojson"),
            ("application/json", "application/geo+json"),
            32 * _MIB,
            "json_records:read_json",
        ),
        FileFormat(
            "JSON Lines",
            (".jsonl", ".ndjson"),
            ("application/jsonl", "application/x-ndjson"),
            32 * _MIB,
            "json_records:read_json_lines",
            is_listed=False,
        ),
        FileFormat(
            "YAML",
            (".yaml", ".yml"),
            ("application/yaml",),
            16 * _MIB,
            "yaml_records:read_yaml",
            work="yaml_records:yaml_work",
            extra="files",
        ),
        FileFormat(
            "XML",
            (".xml", ".nxml", ".rss"),
            ("application/xml", "text/xml"),
            32 * _MIB,
            "xml_records:read_xml",
            recognizer="xml_records:begins_as_xml",
            extra="files",
        ),
        FileFormat(
            "LaTeX",
            (".tex", ".ltx"),
            ("application/x-tex", "text/x-tex"),
            16 * _MIB,
            "latex:read_latex",
            work="latex:latex_work",
            extra="files",
        ),
        FileFormat(
            "CSV",
            (".csv", ".tsv"),
            ("text/csv", "text/tab-separated-values"),
            64 * _MIB,
            "delimited:read_table",
            is_listed=False,
            keeps_text=True,
        ),
        FileFormat(
            "subtitles",
            (".vtt", ".srt"),
            ("text/vtt", "application/x-subrip"),
            64 * _MIB,
            "subtitles:read_subtitles",
            is_listed=False,
        ),
        FileFormat(
            "log",
            (".log",),
            ("text/plain",),
            64 * _MIB,
            "log:read_log",
            is_listed=False,
            keeps_text=True,
        ),
    )
}
"""Every format by its name, in the order in which help texts list them."""

_NAME_BY_ENDING = {
    ending: name
    for name, file_format in FORMATS.items()
    for ending in file_format.endings
}

ENDINGS = tuple(_NAME_BY_ENDING)
"""All endings of file names. In a folder, only files with these endings are read."""


def format_named_by(path: str) -> str | None:
    """Return the name of the format that the ending of a path stands for.

    Examples
    --------
    >>> format_named_by("treaties/1801.HTM")
    'HTML'
    >>> format_named_by("treaties/1801.jpg") is None
    True
    """
    return _NAME_BY_ENDING.get(PurePath(path).suffix.lower())


def formats_in_words(conjunction: str = "or") -> str:
    """Return the formats for a help text or a message.

    Examples
    --------
    >>> formats_in_words()  # doctest: +ELLIPSIS
    'text, Markdown, HTML, PDF, DOCX, XLSX, ... or ...'
    """
    names = [name for name, file_format in FORMATS.items() if file_format.is_listed]
    return f"{', '.join(names[:-1])} {conjunction} {names[-1]}"


def accepted_files() -> str:
    """Return endings and media types for the ``accept`` attribute of a file field."""
    accepted = list(ENDINGS)
    for file_format in FORMATS.values():
        accepted += file_format.media_types
    return ",".join(dict.fromkeys(accepted))


def _function(name: str) -> Callable[..., Any]:
    module_name, _, function_name = name.partition(":")
    module = import_module(f"{_READERS}.{module_name}")
    function: Callable[..., Any] = getattr(module, function_name)
    return function
