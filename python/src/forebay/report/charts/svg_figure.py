"""From a matplotlib figure to SVG that can stand in a page: small, titled, without ids that clash.

matplotlib is loaded with the first chart, not before: a summary in the terminal needs none.
"""

from __future__ import annotations

import io
import logging
import os
import re
from html import escape
from itertools import count
from typing import TYPE_CHECKING

from forebay.report.charts.palette import PATTERNS, coloured, placeholder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: One stack for page, paper and charts. Charts are laid out with DejaVu Sans, the widest: no text outgrows
#: its place.
FONTS = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", "DejaVu Sans", sans-serif'

_SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "forebay",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "hatch.linewidth": 1.2,
    "text.color": placeholder("text"),
    "axes.edgecolor": placeholder("line"),
    "axes.labelcolor": placeholder("muted"),
    "axes.labelsize": 10.5,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 1,
    "xtick.color": placeholder("line"),
    "ytick.color": placeholder("line"),
    "xtick.labelcolor": placeholder("muted"),
    "ytick.labelcolor": placeholder("text"),
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "grid.color": placeholder("line"),
    "figure.facecolor": "none",
}
_serial = count()


class Chart:
    """A finished chart: `title` says what is seen, `about` the same for who cannot see it."""

    def __init__(self, title: str, about: str, svg: str, width_px: int) -> None:
        self.title, self.about, self.width_px = title, about, width_px
        self._svg = svg

    def on_page(self) -> str:
        """SVG in the colours of the page around it."""
        return coloured(self._svg, paper=False)

    def on_paper(self) -> str:
        """SVG in colours of its own, for light paper."""
        return coloured(self._svg, paper=True)


def settings() -> object:
    """In force while a chart is drawn: `with settings(): ...`."""
    # A chart needs no backend, and with one that is not installed, such as a notebook's, the import fails.
    backend = os.environ.pop("MPLBACKEND", None)
    # It says where it keeps its cache if the user's directory cannot be written, as on many compute nodes.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    try:
        import matplotlib
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    return matplotlib.rc_context(_SETTINGS)


def blank(width_px: int, height_px: int) -> Figure:
    """A figure whose unit is the pixel of a page."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width_px / 72, height_px / 72), dpi=72, layout="constrained")


def pattern(ink: str) -> dict[str, object]:
    """Arguments of a bar in this ink, with its pattern."""
    return {
        "facecolor": placeholder(ink),
        "edgecolor": placeholder("paper"),
        "hatch": PATTERNS.get(ink),
        "linewidth": 0.8,
    }


def hide_spines(axes: Axes, *sides: str) -> None:
    """Takes away the spines of `sides` and all tick marks."""
    for side in sides:
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)


def to_chart(figure: Figure, title: str, about: str) -> Chart:
    """The chart of a figure."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    width_px = round(figure.get_figwidth() * 72)
    return Chart(title, about, _cleaned(file.getvalue(), title, about), width_px)


def _cleaned(svg: str, title: str, about: str) -> str:
    """Without prolog, metadata and names nobody refers to; its ids are its own; a title and a description."""
    name = f"c{next(_serial)}"
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.S)
    svg = re.sub(r"font: ([^;\"]*?)(\d[\d.]*px) [^;\"]*", _font, svg)
    used = set(re.findall(r"#([A-Za-z][\w.-]*)", svg))
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r"(url\(#|href=\"#)", rf"\g<1>{name}-", svg)
    svg = re.sub(r">\s+<", "><", svg)
    box = re.search(r'viewBox="([^"]+)"', svg)[1]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box}" '
        f'role="img" aria-labelledby="{name}-title {name}-about">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-about">{escape(about)}</desc>'
    )
    return head + svg[svg.index(">") + 1 :]


def _font(match: re.Match[str]) -> str:
    fonts = FONTS.replace('"', "'")
    return f"font: {match[1]}{match[2]} {fonts}"
