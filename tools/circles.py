"""Checks that no more than three files of a crate, or of the Python package, import each other in a circle,
and that no Python module imports a private name of another.

Reads the `use` lines and paths of Rust sources, follows re-exports to the file that defines a name, and
takes Python's imports from grimp. Tests do not count.
"""

import ast
import collections
import pathlib
import re
import sys

import grimp
import networkx

FILES_MAX = 3
NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?'(?:\\(?:x..|u\{[^}]*\}|.)|[^\\'\n])'""", re.S
)
USE = re.compile(r"\b(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
PATH = re.compile(r"(?<![\w:])((?:[a-z_][a-z_0-9]*::)+)(\w+)")
TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*([;{])")
Path = tuple[str, ...]


def without_tests(text: str) -> tuple[str, set[str]]:
    """The text without comments, strings and inline test modules, and the names of test modules in files."""
    text = NOT_CODE.sub(" ", text)
    tests = set()
    while found := TEST_MODULE.search(text):
        end = found.end()
        if found[2] == ";":
            tests.add(found[1])
        else:
            depth = 1
            while depth and end < len(text):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
        text = text[: found.start()] + text[end:]
    return text, tests


def leaves(tree: str) -> list[tuple[Path, str]]:
    """The paths of one `use` tree, each with the name that it has in this file."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        parts = tuple(part.strip() for part in path.split("::"))
        parts = parts[:-1] if parts[-1] == "self" else parts
        return [(parts, alias.strip() or parts[-1])]
    found, depth, start = [], 0, 0
    body = rest[: rest.rindex("}")]
    for at, letter in enumerate(body + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            if part := body[start:at].strip():
                found += leaves(head.strip() + part)
            start = at + 1
    return found


class Crate:
    """The modules of one crate, by path from its root, with what their `use` lines import."""

    def __init__(self, source: pathlib.Path):
        self.source = source
        self.modules: dict[Path, str] = {}
        self.files: dict[Path, pathlib.Path] = {}
        tests: set[Path] = set()
        for file in sorted(source.rglob("*.rs"), key=lambda file: len(file.parts)):
            if file.parent == source and file.stem == "main" and (source / "lib.rs").exists():
                continue
            path = file.relative_to(source).with_suffix("").parts
            path = () if path in (("lib",), ("main",)) else path[:-1] if path[-1] == "mod" else path
            if any(path[: len(test)] == test for test in tests):
                continue
            self.modules[path], inner = without_tests(file.read_text())
            self.files[path] = file
            tests |= {(*path, name) for name in inner}
        self.names = {
            module: {name: path for tree in USE.findall(text) for path, name in leaves(tree)}
            for module, text in self.modules.items()
        }

    def absolute(self, module: Path, path: Path) -> Path | None:
        """The path from the crate's root; None if it leads out of the crate."""
        if path[0] == "crate":
            return path[1:]
        if path[0] == "self":
            return module + path[1:]
        if path[0] == "super":
            while path and path[0] == "super":
                module, path = module[:-1], path[1:]
            return module + path
        return module + path if (*module, path[0]) in self.modules else None

    def defining(self, path: Path, seen: frozenset[Path] = frozenset()) -> Path | None:
        """The module whose file defines what the path names, behind any re-export."""
        depth = max(depth for depth in range(len(path) + 1) if path[:depth] in self.modules)
        module, rest = path[:depth], path[depth:]
        if not rest or path in seen:
            return module
        imported = self.names[module].get(rest[0])
        if imported is None:
            return module
        target = self.absolute(module, imported)
        return target and self.defining(target + rest[1:], seen | {path})

    def graph(self) -> networkx.DiGraph:
        """An edge from each file to each other file of the crate that it imports from."""
        edges = collections.defaultdict(set)
        for module, text in self.modules.items():
            paths = list(self.names[module].values())
            paths += [(*head.split("::")[:-1], name) for head, name in PATH.findall(USE.sub(" ", text))]
            for path in paths:
                absolute = self.absolute(module, path)
                target = None if absolute is None else self.defining(absolute)
                if target is not None and target != module:
                    edges[self.files[module]].add(self.files[target])
        return networkx.DiGraph(edges)


def python_graph(package: str, source: pathlib.Path) -> networkx.DiGraph:
    """An edge from each module's file to each module's file that it imports."""
    sys.path.insert(0, str(source))
    imports = grimp.build_graph(package, cache_dir=None)

    def file(module: str) -> pathlib.Path:
        path = source.joinpath(*module.split("."))
        return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")

    pairs = ((one, other) for one in imports.modules for other in imports.find_modules_directly_imported_by(one))
    return networkx.DiGraph((file(one), file(other)) for one, other in pairs)


def private_imports(package: str, source: pathlib.Path) -> list[str]:
    """Where a module imports a private name from another module of the package."""
    return [
        f"{file.relative_to(source)}:{node.lineno}: {name.name}"
        for file in sorted((source / package).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith(package))
        for name in node.names
        if name.name.startswith("_") and not name.name.endswith("__")
    ]


def main(top: pathlib.Path) -> int:
    """Names the circles of the checkout at `top`; returns the exit status."""
    graphs = [Crate(source).graph() for source in sorted(top.glob("crates/*/src"))]
    private = []
    if (top / "python").exists():
        graphs.append(python_graph("forebay", top / "python" / "src"))
        private = private_imports("forebay", top / "python" / "src")
    for place in private:
        print(f"error: a private name of another module is imported: {place}", file=sys.stderr)
    circles = [circle for graph in graphs for circle in networkx.strongly_connected_components(graph)]
    large = [circle for circle in circles if len(circle) > FILES_MAX]
    for circle in large:
        names = ", ".join(sorted(file.relative_to(top).as_posix() for file in circle))
        print(f"error: {len(circle)} files import each other in a circle: {names}", file=sys.stderr)
    if large:
        print("hint: move what both sides need into a file below them", file=sys.stderr)
    return int(bool(large or private))


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
