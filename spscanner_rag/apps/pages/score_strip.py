"""The strip of a document: its scores from left to right, and its picks as links."""

from spscanner_rag.apps.pages.scanned_document import ScannedDocument

WIDTH, HEIGHT = 1000, 40
PARTS = 500
THINNEST, REACH = 4, 22  # least widths of a tick and of its clickable area, in the strip's units


def score_strip(number: int, scanned: ScannedDocument, best: float) -> str:
    """The strip as SVG: the higher it is, the better the best sentence there; ``best`` is the full height.

    A click on a pick is a link to it; the page's script takes a click anywhere else to that place.
    """
    result = scanned.result
    characters = max(1, len(result.text))
    heights = (HEIGHT * result.profile(PARTS) / max(best, 1e-12)).clip(0, HEIGHT).tolist()
    step = WIDTH / PARTS
    bars = "".join(
        f"M{part * step:g} {HEIGHT}V{HEIGHT - height:.1f}h{step:g}V{HEIGHT}z"
        for part, height in enumerate(heights)
        if height >= 0.4
    )
    ticks = []
    for passage in sorted(scanned.picks, key=lambda pick: pick.score):  # the best is drawn last, on top
        middle = (passage.start + passage.end) / 2 * WIDTH / characters
        height = max(6.0, HEIGHT * passage.score / max(best, 1e-12))
        ticks.append(
            f'<a href="#d{number}-{scanned.number(passage)}" tabindex="-1">'
            f"<title>{scanned.ranks[passage.start]}: {passage.score:.3f}</title>"
            f'<rect class="tick" {_extent(middle, THINNEST)} y="{HEIGHT - height:.1f}" height="{height:.1f}"/>'
            f'<rect class="reach" {_extent(middle, REACH)} height="{HEIGHT}"/></a>'
        )
    return (
        f'<svg class="strip" data-document="d{number}" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" '
        'role="img" aria-label="Scores from the beginning of the document to its end, and where the best '
        f'sentences stand"><rect class="track" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<path class="profile" d="{bars}"/><rect class="now" width="0" height="{HEIGHT}"/>'
        f"{''.join(ticks)}</svg>\n"
    )


def _extent(middle: float, width: float) -> str:
    return f'x="{min(max(0.0, middle - width / 2), WIDTH - width):.1f}" width="{width}"'
