"""The colours of report and charts, by what they mean.

Each ink has a value for light and one for dark paper, with a contrast of at least 4.5 to it (WCAG 2.1,
1.4.3), except `line`, `still` and `soft`, which carry nothing by themselves. What shares an axis differs in
pattern or label too.
"""

#: Ink -> (on light paper, on dark paper).
INKS: dict[str, tuple[str, str]] = {
    "paper": ("#ffffff", "#15181d"),
    "panel": ("#f5f6f4", "#1d2127"),
    "text": ("#1a1d21", "#e8eaed"),
    "muted": ("#5b626b", "#a2a9b3"),
    "line": ("#d9dcd8", "#363c45"),
    "soft": ("#e9ecea", "#282e36"),
    "write": ("#bf3f0a", "#ff9257"),
    "read": ("#0b63a5", "#62b5f5"),
    "rmw": ("#a3245f", "#ff8fc0"),
    "metadata": ("#8a2f8f", "#dd94e0"),
    "sync": ("#7d6200", "#e8c04a"),
    "waiting": ("#5f6670", "#aab1bb"),
    "still": ("#dfe2de", "#343a43"),
    "problem": ("#b3261e", "#ff8a80"),
    "suggestion": ("#0f6a52", "#5fd0ac"),
    "note": ("#48525e", "#aab4c0"),
}

#: Patterns for the inks that share an axis, so that they differ without colour. See matplotlib's `hatch`.
PATTERNS = {"waiting": "///", "metadata": "xx", "sync": "|||", "read": "\\\\\\", "rmw": ".."}


def placeholder(ink: str) -> str:
    """A colour that no chart has by itself; `coloured` puts the ink in its place."""
    return f"#fe01{list(INKS).index(ink):02x}"


def coloured(svg: str, paper: bool) -> str:
    """The chart with its inks: fixed and light on paper, else variables of the page's style sheet."""
    for ink, (light, _) in INKS.items():
        svg = svg.replace(placeholder(ink), light if paper else f"var(--{ink})")
    return svg
