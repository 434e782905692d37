"""Checks that no crate depends on one of its own floor or above (docs/ARCHITECTURE.md)."""

import json
import subprocess
import sys


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
