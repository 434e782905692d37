"""Checks the C programs, from their object files, for circles of files and for calls against the order of folders.

One file calls another where its object leaves a symbol undefined that the other's defines. Usage: circles_c.py BUILD,
after `make -C kernels`, `make -C mpi` and `make -C replay`.
"""

import re
import subprocess
import sys
from pathlib import Path

CIRCLE_FILES_MAX = 3
#: A folder of mpi/ uses only itself and those before it (docs/reference/mpi.md).
FOLDERS = ["include", "base", "settings", "record", "trace", "report", "collect", "hooks"]


def symbols(paths: list[Path], option: str) -> dict[Path, set[str]]:
    words = ["nm", "--format=posix", "--extern-only", option, *map(str, paths)]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    found: dict[Path, set[str]] = {path: set() for path in paths}
    at = paths[0]
    for line in lines:
        if line.endswith(":"):
            at = Path(line[:-1])
        else:
            found[at].add(line.split()[0])
    return found


def calls(objects: dict[Path, str], hooks: re.Pattern) -> dict[str, set[str]]:
    """Source to the sources it calls. Who calls a name that is a hook means the function behind it, of libc or the MPI."""
    home = {}
    for path, names in symbols(list(objects), "--defined-only").items():
        home |= {name: objects[path] for name in names if not hooks.fullmatch(name)}
    used = symbols(list(objects), "--undefined-only")
    return {objects[path]: {home[name] for name in names if name in home} for path, names in used.items()}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of files that all reach each other."""
    reached = {}
    for start in graph:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = graph[waiting.pop()] - seen
            seen |= new
            waiting += new
        reached[start] = seen
    groups = {tuple(sorted(other for other in reached[file] if file in reached[other])) for file in graph}
    return sorted(list(group) for group in groups if len(group) > CIRCLE_FILES_MAX)


def objects_of(folder: Path, sources: list[Path], out: Path) -> dict[Path, str]:
    found = {out / source.relative_to(folder).with_suffix(".o"): str(source) for source in sources}
    missing = [path for path in found if not path.exists()]
    if missing:
        sys.exit(f"error: {missing[0]} is missing\nhint: build kernels, mpi and replay first, as `make check` does")
    return found


def upward_imports(graph: dict[str, set[str]]) -> list[str]:
    """By a call, or by an include: a header may hold types and inline functions alone."""
    edges = {(file, other) for file, others in graph.items() for other in others}
    for source in Path("mpi").glob("*/*.[ch]"):
        for name in re.findall(r'^#include "(\w+/\w+\.h)"', source.read_text(), re.MULTILINE):
            edges.add((str(source), f"mpi/{name}"))
    place = {folder: number for number, folder in enumerate(FOLDERS)}
    return sorted(
        f"{file} uses {other}"
        for file, other in edges
        if place[Path(file).parent.name] < place[Path(other).parent.name]
    )


def main() -> int:
    build = Path(sys.argv[1])
    exported = re.search(r"global:(.*)local:", Path("mpi/exports.map").read_text(), re.DOTALL)
    hooks = re.compile("|".join(re.findall(r"\w+\*?", exported[1])).replace("*", ".*"))
    # Each kernel states its name to the harness.
    kernel_name = re.compile("kernel_name|main")
    wrong = []
    families = [path.name for path in (build / "replay").iterdir()]
    programs = [
        *((Path("mpi"), sorted(Path("mpi").glob("*/*.c")), build / "mpi" / family, hooks) for family in families),
        *(
            (Path("replay"), sorted(Path("replay").glob("*.c")), build / "replay" / family, re.compile("main"))
            for family in families
        ),
    ]
    kernels = build / "kernels" / "objects"
    for kernel in {path.name for path in kernels.iterdir()} - {"harness"}:
        sources = [path for name in (kernel, "harness") for path in Path("kernels", name).glob("*.c")]
        programs.append((Path("kernels"), sources, kernels, kernel_name))
    for folder, sources, out, names in programs:
        graph = calls(objects_of(folder, sources, out), names)
        wrong += ["a circle of calls: " + ", ".join(circle) for circle in circles(graph)]
        wrong += upward_imports(graph) if folder.name == "mpi" else []
    for line in sorted(set(wrong)):
        print(f"error: {line}", file=sys.stderr)
    if wrong:
        print(
            f"hint: at most {CIRCLE_FILES_MAX} files may call each other; order: {', '.join(FOLDERS)}", file=sys.stderr
        )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
