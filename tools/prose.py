"""Checks the prose of documents, help texts and messages: long sentences and words that are not plain.

Usage: tools/prose.py [FILE...]

Prints the findings in these files, or in all that speak to people, and fails if there is one.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
WORDS_MAX = 35
#: A literal of fewer words is a name, a format or a part of a message: only its words are checked.
MESSAGE_WORDS = 4
#: Each with what to write instead.
NOT_PLAIN = {
    r"anew": "again",
    r"beside": "next to",
    r"whence(?!=)": "from where",
    r"mend(s|ed|ing)?": "fix, correct",
    r"(go|goes|going|went|gone|brings?|brought) home": "is copied to the destination",
    r"(is|are|was|were) told": "name who says it",
    r"(is|it is|are|was|were) said": "name who says it",
    r"ended? well": "succeeded",
    r"by a hair": "narrowly",
    r"unquiet": "noisy",
    r"(lies?|lay|lying) (in|on|at|below|there)": "is",
    r"wish(es)?": "request",
    r"gone on with": "resumed",
    r"goes? on with": "resumes",
    r"what (is there already|has arrived|was left|is left|did not arrive)": "name it",
    r"(since then|on another day)": "leave the history out",
    r"and so \d+ more": "and N similar",
}
PATTERNS = [(re.compile(rf"\b{pattern}\b", re.IGNORECASE), word) for pattern, word in NOT_PLAIN.items()]
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[`*]*[A-Z0-9`*$#-])")
C_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
#: A comment, a character, the file of an #include, or literals that the compiler joins; macros may be between them.
C_TOKEN = re.compile(
    r"/\*(?P<block>.*?)\*/|//(?P<line>[^\n]*)|'(?:[^'\\\n]|\\.)+'|#include[^\n]*"
    r'|(?P<strings>"(?:[^"\\\n]|\\.)*"(?:(?:\s|PRI\w+)*"(?:[^"\\\n]|\\.)*")*)',
    re.DOTALL,
)
RUST_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


def findings_in(text: str, line: int) -> list[tuple[int, str]]:
    """What is wrong in a paragraph that begins on this line."""
    found = []
    for sentence in SENTENCE_END.split(" ".join(text.split())):
        words = re.findall(r"[A-Za-z0-9$`][^\s]*", sentence)
        if len(words) > WORDS_MAX:
            found.append((line, f"{len(words)} words in a sentence: {' '.join(words[:6])} ..."))
    return found + words_in(text, line)


def words_in(text: str, line: int) -> list[tuple[int, str]]:
    """The words that are not plain."""
    return [(line, f'"{hit.group()}": write {word}') for pattern, word in PATTERNS for hit in pattern.finditer(text)]


def paragraphs(text: str):
    """Paragraphs, list items and headings of Markdown with their lines, without code and tables."""
    block, begin, fence = [], 0, ""
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        line = raw.strip()
        opens = re.match(r"(```+|~~~+|:::+)", line)
        if fence or opens:
            if fence and line.startswith(fence) and not line.strip(fence[0]):
                fence = ""
            elif not fence:
                fence = opens.group(1)
            line = ""
        starts_item = re.match(r"([*+-]|\d+\.)\s+|#+\s|>", line)
        if not line or line.startswith("|") or starts_item:
            if block:
                yield begin, plain(" ".join(block))
            block = []
        if line and not line.startswith("|"):
            begin = begin if block else number
            block.append(line)


def plain(text: str) -> str:
    """The text as a reader sees it; code is one word."""
    text = re.sub(r"``[^`]*``|`[^`]*`", "`code`", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"^([*+-]|\d+\.|#+|>)\s+", "", text)


def of_markdown(text: str) -> list[tuple[int, str]]:
    """Findings in a document."""
    return [found for line, block in paragraphs(text) for found in findings_in(block, line)]


def of_message(text: str, line: int) -> list[tuple[int, str]]:
    """Findings in a paragraph of a literal: none in code (SQL, C, examples) and options."""
    is_code = re.match(r"\s*(SELECT|UPDATE|INSERT|DELETE|CREATE|PRAGMA|struct)\b|\x08|    |--?\w", text)
    is_prose = re.search(r"\b(the|a|an|is|of|to|and|in|it)\b", text) and "#SBATCH" not in text
    if is_code:
        return []
    if not is_prose or len(text.split()) < MESSAGE_WORDS:
        return words_in(plain(text), line)
    return findings_in(plain(text), line)


def of_rust(text: str) -> list[tuple[int, str]]:
    """Findings in documenting comments, which are the help of options, and in literals; not of tests."""
    text = text.split("#[cfg(test)]")[0]
    found, comment = [], []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        words = re.match(r"\s*//[/!] ?(.*)", line)
        if words and words.group(1):
            comment.append(words.group(1))
        elif comment:
            first = number - len(comment)
            found += [
                (first + at - 1, what)
                for at, block in paragraphs("\n".join(comment))
                for _, what in findings_in(block, 0)
            ]
            comment = []
    code = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    for literal in RUST_STRING.finditer(code):
        message = re.sub(r"\\\n\s*", "", literal.group(1)).replace("\\n", "\n").replace('\\"', '"')
        line = code[: literal.start()].count("\n") + 1
        found += [one for part in message.split("\n") for one in of_message(part, line)]
    return sorted(found)


def of_python(text: str) -> list[tuple[int, str]]:
    """Findings in string literals and docstrings."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for block in re.split(r"\n\s*\n", node.value):
                found += of_message(block, node.lineno)
    return sorted(found)


def of_c(text: str) -> list[tuple[int, str]]:
    """Findings in comments without indented examples, and in literals: adjacent ones are one message."""
    found = []
    for token in C_TOKEN.finditer(text):
        line = text.count("\n", 0, token.start()) + 1
        if token["block"] is not None:
            paragraph = re.sub(r"^[ \t]*\*(  .*)?", "", token["block"], flags=re.MULTILINE)
            for block in re.split(r"\n\s*\n", paragraph):
                found += of_message(block.strip(), line)
        elif token["line"] is not None:
            found += of_message(token["line"].strip(), line)
        elif token["strings"]:
            message = "".join(C_STRING.findall(token["strings"])).replace("\\n", "\n").replace('\\"', '"')
            found += [one for part in message.split("\n") for one in of_message(part, line)]
    return sorted(found)


READERS = {".md": of_markdown, ".rs": of_rust, ".py": of_python, ".c": of_c, ".h": of_c}


def checked_files() -> list[pathlib.Path]:
    """Documents and the sources that speak to users; decisions and the changelog are history."""
    documents = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("*/README.md"),
        *ROOT.glob("examples/*/*.md"),
    ]
    history = ROOT / "docs" / "development" / "decisions"
    documents = [path for path in documents if history not in path.parents]
    rust = [path for path in ROOT.glob("crates/*/src/**/*.rs") if path.name != "tests.rs"]
    c_parts = ("mpi", "replay", "kernels", "crates/*/include")
    c = [path for part in c_parts for path in ROOT.glob(f"{part}/**/*.[ch]")]
    return sorted([*documents, *rust, *c, *ROOT.glob("python/src/**/*.py")])


def main(words: list[str]) -> int:
    """Returns the exit code."""
    named = [pathlib.Path(word).resolve() for word in words]
    findings = [
        f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{line}: {what}"
        for path in named or checked_files()
        for line, what in READERS[path.suffix](path.read_text())
    ]
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
