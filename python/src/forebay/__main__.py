"""The program `forebay-py`: starts the verbs written in Python, or names the extra that they need."""

import sys

#: The extra of a verb, if not `report`.
_EXTRAS = {"tune": "tune"}


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
        print(f"hint: pip install 'forebay[{_EXTRAS.get(verb, 'report')}]'", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
