"""Checks the order of crates, and of a crate's folders, and draws the picture in docs/development/architecture.md.

A crate has at most LINES_MAX lines, unless its Cargo.toml has a higher limit, with the reason in decision 19. Its
Cargo.toml names its floor and may name its folders, lowest first; other modules count to `*`, or to the
lowest. The methods of a type are in the folder of the type.

Usage: tools/floors.py [--draw]. Without --draw a picture that differs from the crates is an error.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

import networkx
from circles import Crate, without_tests

LINES_MAX = 5500
PAGE = pathlib.Path("docs/development/architecture.md")
TYPE = re.compile(r"\b(?:struct|enum) (\w+)")
METHODS = re.compile(r"^impl(?:<[^>]*>)? (\w+)(?:<[^>]*>)? \{", re.MULTILINE)
BEGIN, END = "```{graphviz}\n", "```\n"
#: Legible on white and on black.
STYLE = """:caption: The crates; an arrow leads from a crate to one that it uses

digraph crates {
  bgcolor=transparent; color="#808080"; fontcolor="#808080"; fontname="sans-serif"; fontsize=10; labeljust=l
  node [shape=box, style="filled,rounded", color="#2f6f9f", fontcolor=white, fontname="sans-serif", fontsize=11]
  edge [color="#808080", arrowsize=0.6]"""


def packages_of_workspace() -> list[dict]:
    """What cargo says of each crate."""
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["packages"]


def crates(packages: list[dict]) -> tuple[dict[str, int | None], networkx.DiGraph]:
    """The floor of each crate, and an edge from each crate to each that it is built from."""
    floors = {}
    for package in packages:
        floors[package["name"]] = ((package["metadata"] or {}).get("forebay") or {}).get("floor")
    graph = networkx.DiGraph()
    graph.add_nodes_from(floors)
    for package in packages:
        for dependency in package["dependencies"]:
            # What only tests use may come from anywhere.
            if dependency["name"] in floors and dependency["kind"] != "dev":
                graph.add_edge(package["name"], dependency["name"])
    return floors, graph


def faults(floors: dict[str, int | None], graph: networkx.DiGraph) -> list[str]:
    """What breaks the order."""
    found = [f"{name}: no floor in [package.metadata.forebay]" for name in floors if floors[name] is None]
    for name, below in graph.edges:
        if None not in (floors[name], floors[below]) and floors[below] >= floors[name]:
            found.append(f"{name} (floor {floors[name]}) uses {below} (floor {floors[below]})")
    return found


def wrong_imports(package: dict) -> list[str]:
    """Imports of a crate's files that lead to a higher folder of it."""
    folders = ((package["metadata"] or {}).get("forebay") or {}).get("folders", [])
    source = pathlib.Path(package["manifest_path"]).parent / "src"

    def floor(file: pathlib.Path) -> int:
        name = file.relative_to(source).with_suffix("").parts[0]
        others = folders.index("*") if "*" in folders else 0
        return folders.index(name) if name in folders else others

    edges = Crate(source).graph().edges if folders else []
    return [
        f"{package['name']}: {file.relative_to(source)} uses {below.relative_to(source)} of a higher folder"
        for file, below in edges
        if file.stem != "lib" and floor(below) > floor(file)
    ]


def excess_lines(package: dict) -> list[str]:
    """The crate, if its source, without the headers of its files, is longer than it may be."""
    limit = ((package["metadata"] or {}).get("forebay") or {}).get("lines_max", LINES_MAX)
    source = pathlib.Path(package["manifest_path"]).parent / "src"
    texts = [file.read_text() for file in source.rglob("*.rs")]
    lines = sum(not line.startswith("//!") for text in texts for line in text.splitlines())
    return [f"{package['name']}: {lines} lines, and at most {limit} are allowed"] if lines > limit else []


def foreign_methods(package: dict) -> list[str]:
    """Methods of a type in another folder than the type's own."""
    folders = ((package["metadata"] or {}).get("forebay") or {}).get("folders", [])
    folders = [name for name in folders if name != "*"]
    source = pathlib.Path(package["manifest_path"]).parent / "src"
    files = [file for name in folders for file in (*source.glob(f"{name}.rs"), *(source / name).rglob("*.rs"))]
    texts = {file: without_tests(file.read_text())[0] for file in files}

    def folder(file: pathlib.Path) -> str:
        return file.relative_to(source).with_suffix("").parts[0]

    homes = collections.defaultdict(set)
    for file, text in texts.items():
        for name in TYPE.findall(text):
            homes[name].add(folder(file))
    return [
        f"{package['name']}: {file.relative_to(source)} has methods of {name}, a type of {' and '.join(homes[name])}"
        for file, text in texts.items()
        for name in METHODS.findall(text)
        if homes[name] and folder(file) not in homes[name]
    ]


def picture(floors: dict[str, int], graph: networkx.DiGraph) -> str:
    """A picture for Graphviz: one frame per floor, top floor first; arrows lead to used crates."""

    def short(name: str) -> str:
        return name.removeprefix("forebay-")

    lines = [STYLE]
    for floor in sorted(set(floors.values()), reverse=True):
        members = "; ".join(f'"{short(name)}"' for name in sorted(floors) if floors[name] == floor)
        lines.append(f'  subgraph cluster_{floor} {{ label="floor {floor}"; rank=same; {members} }}')
    arrows = networkx.transitive_reduction(graph).edges
    lines += sorted(f'  "{short(name)}" -> "{short(below)}"' for name, below in arrows)
    return "\n".join([*lines, "}"]) + "\n"


def main(is_drawing: bool) -> int:
    """Checks the order, then the picture; returns the exit status."""
    packages = packages_of_workspace()
    floors, graph = crates(packages)
    found = faults(floors, graph)
    for package in packages:
        found += wrong_imports(package) + foreign_methods(package) + excess_lines(package)
    for line in found:
        print(f"error: {line}", file=sys.stderr)
    if found:
        print("hint: a crate uses only crates of lower floors, a folder only lower folders", file=sys.stderr)
        print("hint: a crate that grows has more than one theme: see decision 19", file=sys.stderr)
        print("hint: only the folder of a type has its methods; elsewhere, write a function", file=sys.stderr)
        return 1
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    drawn = before + BEGIN + picture(floors, graph) + END + rest.partition(END)[2]
    if is_drawing:
        PAGE.write_text(drawn)
    elif drawn != text:
        print(f"error: the picture in {PAGE} differs from the crates", file=sys.stderr)
        print("hint: make format draws it", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--draw" in sys.argv[1:]))
