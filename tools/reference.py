"""Writes docs/reference/command-line.md from the help of every command.

Usage: tools/reference.py FOREBAY [--check]

FOREBAY is the program. With --check, only says whether the page is as the program has it.
"""

import os
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "reference" / "command-line.md"
HEAD = """# Command line

Every command, as `--help` shows it. `man forebay-COMMAND` has the same text.

"""
#: Words that only other parts of Forebay call, and help itself.
NOT_LISTED = ("help",)


def help_of(program: str, words: list[str]) -> str:
    """What `forebay WORDS --help` prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOREBAY_")}
    command = [program, *words, "--help"]
    done = subprocess.run(
        command, env=environment | {"COLUMNS": "100"}, check=True, capture_output=True, text=True
    )
    return done.stdout.rstrip() + "\n"


def verbs_in(text: str) -> list[str]:
    """The commands that a help text lists."""
    _, _, listed = text.partition("\nCommands:\n")
    listed = listed.partition("\n\n")[0]
    return [verb for verb in re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE) if verb not in NOT_LISTED]


def sections(program: str, words: list[str]):
    """The heading and help of a command, then of each of its commands."""
    text = help_of(program, words)
    level = "##" if len(words) < 2 else "###"
    yield f"{level} forebay {' '.join(words)}".rstrip() + f"\n\n```text\n{text}```\n"
    for verb in verbs_in(text):
        yield from sections(program, [*words, verb])


def main(program: str, is_check: bool) -> int:
    """Returns the exit code."""
    page = HEAD + "\n".join(sections(program, []))
    if not is_check:
        PAGE.write_text(page)
    elif PAGE.read_text() != page:
        print(f"error: {PAGE} is not as the program has it", file=sys.stderr)
        print("hint: make reference writes it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--check" in sys.argv[2:]))
