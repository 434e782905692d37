"""Writes docs/reference/schemas: a JSON schema of each output of `forebay` (docs/reference/json.md).

Usage: tools/schemas.py FOREBAY [--check]

FOREBAY is the program, which writes the schemas of its own output. Those of the commands in Python come from
their types. With --check, only says whether the files are as the program has them.
"""

import inspect
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import Any

import msgspec

from forebay.bench.result import Io500
from forebay.cli.why import Explanation
from forebay.plan import answer
from forebay.plan.machine_file import MachineFile
from forebay.report.objects import Report
from forebay.report.tuning.objects import TuningReport
from forebay.simulate.simulation import Simulation
from forebay.site.explain import SiteExplanation
from forebay.tune.study import Head, StudyLine

SCHEMAS = pathlib.Path(__file__).resolve().parents[1] / "docs" / "reference" / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: As in crates/forebay-cli/src/schemas.rs.
ID = "https://forebay.invalid/schemas"
#: Name of the schema, its version, what prints or holds the JSON, and its types.
OUTPUTS = (
    ("bench-io500", 1, "forebay bench io500 --json", (Io500,)),
    ("machine-file", 1, "machines/*.toml", (MachineFile,)),
    ("plan", 1, "forebay plan --json", (answer.Plan,)),
    ("plan-calls", 1, "forebay plan calls --json", (answer.SystemCallCounts,)),
    ("plan-capacity", 1, "forebay plan capacity --json", (answer.Capacity,)),
    ("plan-calibration", 1, "forebay plan calibration --json", (answer.Calibration,)),
    ("plan-checkpoint", 1, "forebay plan checkpoint --json", (answer.CheckpointPlan,)),
    ("plan-machines", 1, "each entry of forebay plan machine list --json", (answer.MachineSummary,)),
    ("plan-study", 1, "forebay plan study --json", (answer.Study,)),
    ("plan-sweep", 1, "forebay plan sweep --json", (answer.Sweep,)),
    ("report", 2, "forebay report --json", (Report,)),
    ("simulation", 1, "forebay plan simulate --json", (Simulation,)),
    ("study", 1, "each line of study.jsonl", (Head, StudyLine)),
    ("tuning-report", 1, "forebay tune --json, and forebay report --json of a study", (TuningReport,)),
    ("why", 1, "forebay why --json", (Explanation, SiteExplanation)),
)
#: A member of a type with a comment in its line.
COMMENTED = re.compile(r"^    (\w+): [^#\n]*#:? (.+)$", re.MULTILINE)


def structs(of: Any, found: dict[str, type]) -> dict[str, type]:
    """The types of objects below a type, by name."""
    if isinstance(of, msgspec.inspect.StructType):
        if of.cls.__name__ in found:
            return found
        found[of.cls.__name__] = of.cls
    if isinstance(of, tuple):
        for one in of:
            structs(one, found)
    elif isinstance(of, msgspec.inspect.Type | msgspec.inspect.Field):
        for name in of.__struct_fields__:
            structs(getattr(of, name), found)
    return found


def complete(schema: dict[str, Any], of: type[msgspec.Struct]) -> None:
    """Names what is always written, and takes descriptions from comments."""
    always = [field for field in msgspec.structs.fields(of) if field.default is not msgspec.UNSET]
    if not of.__struct_config__.omit_defaults:
        schema["required"] = [field.encode_name for field in always]
    for member in schema["properties"].values():
        member.pop("default", None)
    for base in reversed(of.__mro__[: of.__mro__.index(msgspec.Struct)]):
        for name, text in COMMENTED.findall(inspect.getsource(base)):
            schema["properties"][name]["description"] = text[0].upper() + text[1:]


def schema_of(name: str, version: int, title: str, types: tuple[type, ...]) -> dict[str, Any]:
    """The schema of one output."""
    roots, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for described in msgspec.inspect.multi_type_info(types):
        for of in structs(described, {}).values():
            complete(components[of.__name__], of)
    head = {"$id": f"{ID}/{name}/{version}", "$schema": DIALECT, "title": title}
    descriptions = [inspect.cleandoc(of.__doc__) for of in types]
    of_root = roots[0] if len(roots) == 1 else {"anyOf": list(roots)}
    return head | {"description": "\nOr: ".join(descriptions)} | of_root | {"$defs": components}


def generated(program: str) -> dict[str, str]:
    """The text of each file."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([program, "__schemas", directory], check=True)
        found = {path.name: json.loads(path.read_text()) for path in pathlib.Path(directory).iterdir()}
    found |= {f"{name}.json": schema_of(name, *rest) for name, *rest in OUTPUTS}
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in found.items()}


def main(program: str, is_check: bool) -> int:
    """Returns the exit code."""
    new = generated(program)
    old = {path.name: path.read_text() for path in SCHEMAS.glob("*")}
    if is_check:
        wrong = sorted(name for name in new.keys() | old.keys() if new.get(name) != old.get(name))
        for name in wrong:
            print(f"error: {SCHEMAS / name} is not as the program has it", file=sys.stderr)
        if wrong:
            print("hint: make reference writes it; json.md says when its version rises", file=sys.stderr)
        return int(bool(wrong))
    SCHEMAS.mkdir(exist_ok=True)
    for name in old.keys() - new.keys():
        (SCHEMAS / name).unlink()
    for name, text in new.items():
        (SCHEMAS / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--check" in sys.argv[2:]))
