"""Plain text in UTF-8, as it is."""


def decoded(name: str, data: bytes) -> str:
    """UTF-8 without its byte order mark; ``ValueError`` for anything else, binary data included."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError(f"{name}: got UTF-16; expected UTF-8: convert it with `iconv -f UTF-16 -t UTF-8`")
    if b"\0" in data:
        raise ValueError(
            f"{name}: got binary data (a zero byte at {data.index(0)}); expected UTF-8 text, HTML, Markdown, "
            "PDF or DOCX: convert it first"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}: got byte 0x{data[error.start]:02x} at {error.start}, not UTF-8; expected UTF-8 text: "
            "convert text in another encoding, for example with `iconv -f LATIN1 -t UTF-8`"
        ) from None
