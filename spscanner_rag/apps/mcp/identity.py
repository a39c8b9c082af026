"""What an answer's ids are bound to: the whole text that it was made from."""

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_bytes

from spscanner_rag.files.documents import TextFile

FILE_DIGITS = 8  # enough to see that a file has changed
TEXT_CHARACTERS = 22  # 128 bits and more, of which none can be guessed


@dataclass(frozen=True, eq=False)
class IdentifiedText:
    """A document, and the mark of its whole text.

    Parameters
    ----------
    document : TextFile
        Its path is empty for a text that an agent sent.
    mark : str
        The beginning of the digest of a file's text. For a text that an agent sent, a
        digest under a key of this process: only who was told it can name the text.
    """

    document: TextFile
    mark: str


class Identities:
    """Marks texts, with a key that no client knows.

    Examples
    --------
    >>> from spscanner_rag.files.documents import TextFile
    >>> identities = Identities()
    >>> first = identities.of(TextFile("", "It rained. Anne signed."))
    >>> other = identities.of(TextFile("", "It rained. The bell rang."))
    >>> first.mark == other.mark
    False
    """

    def __init__(self) -> None:
        self._key = token_bytes(32)

    def of(self, document: TextFile) -> IdentifiedText:
        """The document with its mark."""
        content = document.text.encode(errors="surrogatepass")
        if document.path:
            return IdentifiedText(document, sha256(content).hexdigest()[:FILE_DIGITS])
        digest = urlsafe_b64encode(hmac.digest(self._key, content, "sha256")).decode()
        return IdentifiedText(document, digest[:TEXT_CHARACTERS])
