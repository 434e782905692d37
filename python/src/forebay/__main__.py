"""The program `forebay-py`: starts the verbs written in Python, or names the extra that they need."""

import sys

#: The extra of a verb, if not `report`.
_EXTRAS = {"plan": "plan", "tune": "tune"}


def main() -> None:
    """Ends the process."""
    try:
        from forebay.cli import main as verbs

        verbs()
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] == "forebay":
            raise
        verb = next((word for word in sys.argv[1:] if not word.startswith("-")), "report")
        print(
            f"error: forebay {verb} needs a Python package that is not installed: {error.name}",
            file=sys.stderr,
        )
        extra = _EXTRAS.get(verb, "report")
        print(f"hint: {sys.executable} -m pip install '{_source()}[{extra}]'", file=sys.stderr)
        sys.exit(1)


def _source() -> str:
    """What pip can install Forebay from: the wheel or the sources of this installation (PEP 610)."""
    # Late: they take longer to load than the rest of the program.
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    try:
        url = urlsplit(json.loads(distribution("forebay").read_text("direct_url.json") or "{}")["url"])
        path = Path(unquote(url.path))
    except (PackageNotFoundError, ValueError, LookupError):
        from forebay import __version__

        return f"forebay-{__version__}-py3-none-manylinux_2_28_x86_64.whl"
    # Without its folder if it was removed after the installation.
    return str(path) if path.exists() else path.name


if __name__ == "__main__":
    main()
