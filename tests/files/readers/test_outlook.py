import pytest

from tests.small_files import msg

pytest.importorskip("oxmsg", reason="the extra files is not installed")
pytest.importorskip("lxml", reason="the extra files is not installed")

from spscanner_rag.files.readers.outlook import is_msg, read_msg


def test_a_mail_of_outlook() -> None:
    files = {"plan.pdf": b"x" * 3_000}
    data = msg("Peace", "It rained.\n> Did it?", "Ann", attachments=files)
    assert is_msg(data)
    document = read_msg(data)
    assert document.text == (
        "Peace\n\nFrom: Ann\n\nIt rained.\n\nDid it?\n\n"
        "Attachment: plan.pdf (application/octet-stream, 2 KiB)"
    )
    assert document.place_name(document.text.index("Did")) == "line 2, quoted"
    assert document.notes == ("attachments are listed, not read (1)",)


def test_a_body_in_html() -> None:
    assert "It rained." in read_msg(msg("Peace", html=b"<p>It rained.</p>")).text


@pytest.mark.parametrize("length", [8, 500, 600, 1_000])
def test_a_cut_file_is_refused(length: int) -> None:
    data = msg("Peace", "It rained.")[:length]
    with pytest.raises(ValueError, match="expected a complete file"):
        read_msg(data)
