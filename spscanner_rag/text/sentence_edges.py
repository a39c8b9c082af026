"""Characters at the edges of sentences, as parts of regular expressions."""

CAPITAL = "[^\\W\\d_a-zß-öø-ÿ]"
"""One letter that is not a small one."""

OPENING = "[\"'“„‘«‹(\\[]*"  # noqa: RUF001
"""Quotation marks and brackets before a sentence."""

CLOSING = "[\"'”’»›)\\]]*"  # noqa: RUF001
"""Quotation marks and brackets after a sentence."""

BULLETS = "-*+•‣◦▪▫·–—●○■□◆◇❖➢➤►▶⁃∙✓✔☐☑☒"  # noqa: RUF001
"""Marks before an item of a list, the hyphen first."""
