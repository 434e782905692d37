"""The JSON schemas of docs/reference/schemas, as strict as tests need them."""

import json
import pathlib

import jsonschema

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "schemas"
NAMES = sorted(path.stem for path in SCHEMAS.glob("*.json"))


def strict(schema):
    """The schema without room for members that it does not name: users' programs must accept those of later versions."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: strict(one) for name, one in schema.items()}
    if "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed


def validator(name: str) -> jsonschema.protocols.Validator:
    """Checks values against the strict schema of this name."""
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(strict(schema))


def complaints(name: str, value) -> list[str]:
    """What of the value is not as the schema has it."""
    return [f"{error.json_path}: {error.message}" for error in validator(name).iter_errors(value)]
