"""Writes docs/reference/command-line.md and exit-codes.md from the help of every command, and the pages of settings
and of environment variables.

Usage: tools/reference.py FOREBAY [--check]

FOREBAY is the program. With --check, only says whether the pages are as the program has them.
"""

import os
import pathlib
import re
import subprocess
import sys

REFERENCE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "reference"
HEAD = """# Command line

Every command, as `--help` shows it. `man forebay-COMMAND` has the same text.

"""
CODES_HEAD = """# Exit codes

`forebay run` and `forebay profile` end with the exit code of the job or command, if they started it. If signal N ended
it, the code is 128 + N. The other codes are Forebay's:

| code | commands | meaning |
|---|---|---|
"""
CODES_TAIL = """
After 122 and 123 the data are kept. [Rescue data after a failure](../how-to/rescue.md) says how to recover them.
"""
#: An exit code of more commands than this is one of all commands.
NAMED_COMMANDS_MAX = 8
#: Words that only other parts of Forebay call, and help itself.
NOT_LISTED = ("help",)


def help_of(program: str, words: list[str]) -> str:
    """What `forebay WORDS --help` prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FOREBAY_")}
    command = [program, *words, "--help"]
    done = subprocess.run(command, env=environment | {"COLUMNS": "100"}, check=True, capture_output=True, text=True)
    return done.stdout.rstrip() + "\n"


def verbs_in(text: str) -> list[str]:
    """The commands that a help text lists."""
    _, _, listed = text.partition("\nCommands:\n")
    listed = listed.partition("\n\n")[0]
    return [verb for verb in re.findall(r"^  ([a-z0-9-]+) ", listed, re.MULTILINE) if verb not in NOT_LISTED]


def sections(program: str, words: list[str]):
    """The heading and help of a command, then of each of its commands."""
    text = help_of(program, words)
    level = "##" if len(words) < 2 else "###"
    yield f"{level} forebay {' '.join(words)}".rstrip() + f"\n\n```text\n{text}```\n"
    for verb in verbs_in(text):
        yield from sections(program, [*words, verb])


def exit_codes(page: str) -> str:
    """The page of exit codes, from the section of each command on the page of all commands."""
    commands: dict[tuple[str, str], list[str]] = {}
    for command, text in re.findall(r"^#+ forebay (.+?)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        _, _, listed = text.partition("Exit codes:\n")
        for code, meaning in re.findall(r"^ +(\d[\d+ N]*?)  +(.*)$", listed, re.MULTILINE):
            commands.setdefault((code, meaning), []).append(command)
    rows = []
    for (code, meaning), named in sorted(commands.items(), key=lambda item: int(item[0][0].split()[0])):
        which = "all" if len(named) > NAMED_COMMANDS_MAX else ", ".join(f"`{one}`" for one in named)
        rows.append(f"| {code} | {which} | {meaning} |\n")
    return CODES_HEAD + "".join(rows) + CODES_TAIL


def main(program: str, is_check: bool) -> int:
    """Returns the exit code."""
    page = HEAD + "\n".join(sections(program, []))
    pages = {"command-line.md": page, "exit-codes.md": exit_codes(page)}
    for name in ("configuration", "environment"):
        words = [program, "__reference", name]
        pages[f"{name}.md"] = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    for name, text in pages.items():
        path = REFERENCE / name
        if not is_check:
            path.write_text(text)
        elif path.read_text() != text:
            print(f"error: {path} is not as the program has it", file=sys.stderr)
            print("hint: make reference writes it", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--check" in sys.argv[2:]))
