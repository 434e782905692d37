"""Checks that no crate depends on one of its own floor or above (docs/ARCHITECTURE.md), nor a folder of a crate."""

import json
import re
import subprocess
import sys
from pathlib import Path

# Folders of a crate, lowest first. Modules beside them are below all of them.
FOLDERS = {"forebay-mover": ["model", "journal", "status", "plan", "copy"]}


def wrong_imports(package: dict, folders: list[str]) -> list[str]:
    source = Path(package["manifest_path"]).parent / "src"
    wrong = []
    for file in source.rglob("*.rs"):
        name = file.relative_to(source)
        folder = name.parts[0].removesuffix(".rs")
        if folder == "lib":
            continue
        floor = folders.index(folder) if folder in folders else 0
        for used in re.findall(r"\bcrate::(\w+)", file.read_text(encoding="utf-8").split("#[cfg(test)]")[0]):
            if used in folders and folders.index(used) > floor:
                wrong.append(f"{package['name']}: {name} uses the higher folder {used}")
    return wrong


def main() -> int:
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["packages"]
    floors = {}
    wrong = []
    for package in packages:
        floor = ((package["metadata"] or {}).get("forebay") or {}).get("floor")
        if floor is None:
            wrong.append(f"{package['name']}: no floor in [package.metadata.forebay]")
        floors[package["name"]] = floor
    for package in packages:
        name = package["name"]
        wrong += wrong_imports(package, FOLDERS.get(name, []))
        for dependency in package["dependencies"]:
            below = floors.get(dependency["name"])
            # What only tests use may come from anywhere.
            if below is None or floors[name] is None or dependency["kind"] == "dev":
                continue
            if below >= floors[name]:
                wrong.append(f"{name} (floor {floors[name]}) uses {dependency['name']} (floor {below})")
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    if wrong:
        print("hint: lower rooms never see higher ones; rooms of one floor do not see each other", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
