"""Machine files: those that are shipped are sound, and a wrong one is named with file, key and remedy."""

import json
import os
import pathlib
import tomllib

import jsonschema
import pytest

from forebay.plan.errors import PlanError
from forebay.plan.machine import figures_in, read_file, read_machine
from forebay.profiles.errors import ProfileError
from forebay.profiles.machine import read_machine as read_for_report

PROJECT = pathlib.Path(__file__).resolve().parents[2]
SHIPPED = sorted((PROJECT / "machines").glob("*.toml"))
SCHEMA = json.loads((PROJECT / "docs" / "reference" / "schemas" / "machine-file.json").read_text())
PUBLISHED = {
    row["id"]
    for name in ("machines", "calibration")
    for row in json.loads((PROJECT / "python" / "src" / "forebay" / "plan" / "data" / f"{name}.json").read_text())
}
GOOD = """
name = "m"
scale = "full size"
[compute]
nodes = { value = 10, source = "s" }
[storage.bb]
kind = "datawarp"
servers = { value = 4, source = "s" }
server_write_bandwidth = { value = "5 GB/s", source = "s" }
server_capacity = { value = "4 TB", source = "s" }
granularity = { value = "200 GB", source = "s" }
"""


def refusal(tmp_path, old, new):
    """The message and hint for GOOD with a change."""
    assert old in GOOD, "the test is out of date"
    return refusal_of(tmp_path, GOOD.replace(old, new))


def refusal_of(tmp_path, text):
    file = tmp_path / "m.toml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(PlanError) as refused:
        read_machine(file)
    assert str(refused.value).startswith(f"{file}: ") and refused.value.hint
    return f"{refused.value} | {refused.value.hint}"


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_shipped_file_is_sound_and_fits_the_schema(file):
    machine = read_machine(file)
    jsonschema.validate(tomllib.loads(file.read_text()), SCHEMA)
    assert machine.storage and all(one.servers >= 1 for one in machine.storage.values())


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_sources_name_rows_that_exist(file):
    figures = list(figures_in(read_file(file)))
    assert figures
    for key, figure in figures:
        for word in figure.source.replace("(", " ").replace(")", " ").replace(",", " ").split():
            if word[:1] == "S" and word[1:2].isdigit() and "-" in word:
                assert word.rstrip(".;:") in PUBLISHED, (file.name, key, word)


def test_good_file_is_read(tmp_path):
    (tmp_path / "m.toml").write_text(GOOD)
    storage = read_machine(tmp_path / "m.toml").storage["bb"]
    assert storage.server_read_bytes_per_s == 5e9 and storage.capacity_bytes == 16e12
    assert storage.granularity_bytes == 200e9 and storage.stripe_count == 4


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"5 GB/s"', '"5 GB"', ["storage.bb.server_write_bandwidth", "unit of a size", "this is a rate"]),
        ('"5 GB/s"', '"40 Gb/s"', ["server_write_bandwidth", "bits", "divide by 8"]),
        ('"5 GB/s"', '"40 Gbit/s"', ["means bits"]),
        ('"5 GB/s"', '"5 gb/s"', ["did you mean", "GB/s"]),
        ('"5 GB/s"', '"5"', ["unit is missing", "GB/s"]),
        ('"5 GB/s"', "5", ["a number alone has no unit"]),
        ('"5 GB/s"', '"-5 GB/s"', ["negative"]),
        ('"5 GB/s"', '"0 GB/s"', ["zero"]),
        ('"5 GB/s"', '"1e999 GB/s"', ["finite"]),
        ('"5 GB/s"', '"5.5.5 GB/s"', ["not a number"]),
        ('"5 GB/s"', '"5 kB/s"', ["outside of 1 MB/s", "check its unit"]),
        ('"5 GB/s"', "true", ["server_write_bandwidth"]),
        ('"200 GB"', '"200 TB"', ["granularity", "more than the 4 TB of one server", "check both units"]),
        ('"200 GB"', '"200 B"', ["granularity is 200 B", "check its unit"]),
        ("value = 4", "value = 0", ["storage.bb.servers = 0", "whole number"]),
        ("value = 4", "value = 4.5", ["storage.bb.servers = 4.5", "whole number"]),
        ("value = 4", 'value = "4"', ["storage.bb.servers", "whole number"]),
        ("servers =", "server =", ["storage.bb.server", "did you mean servers"]),
        ('kind = "datawarp"', 'kind = "dw"', ["storage.bb.kind", "dw"]),
        ('kind = "datawarp"', 'kind = "node-local"', ["servers is 4", "compute.nodes is 10"]),
        ('source = "s" }\n[storage', 'source = " " }\n[storage', ["compute.nodes has no source", "assumption"]),
        (', source = "s" }\n[storage', " }\n[storage", ["compute.nodes.source", "missing", "assumption"]),
        ("value = 10,", "value = 10000000000,", ["compute.nodes is 10000000000", "check the number"]),
        ('kind = "datawarp"', 'kind = "datawarp"\npool = "a b"', ["storage.bb.pool", "no name of a pool"]),
        ('kind = "datawarp"', 'kind = "datawarp"\npool = "a\\nrm -rf x"', ["storage.bb.pool", "letters, digits"]),
        ("[compute]", "[computer]", ["computer", "did you mean compute"]),
        ('granularity = { value = "200 GB", source = "s" }', "", ["granularity is missing", "dwstat"]),
        ('server_write_bandwidth = { value = "5 GB/s", source = "s" }', "", ["write_bandwidth is missing"]),
        ("[storage.bb]", "[storage]", ["storage is not a table of tables", "[storage.NAME]"]),
        ('name = "m"', "", ["name", "missing"]),
        ('name = "m"', 'name = "m', ["not TOML"]),
    ],
)
def test_wrong_figure_is_named_with_file_key_and_remedy(tmp_path, old, new, words):
    told = refusal(tmp_path, old, new)
    for word in words:
        assert word in told, told


@pytest.mark.parametrize(
    ("total", "words"),
    [
        ('"160 GB/s"', ["4 servers of server_write_bandwidth 5 GB/s are 20 GB/s", "factor of 8", "bits and bytes"]),
        ('"20 MB/s"', ["factor of 1e+03", "prefix of the unit"]),
        ('"60 GB/s"', ["factor of 3", "correct servers, write_bandwidth or server_write_bandwidth"]),
    ],
)
def test_totals_that_contradict_one_server_are_named(tmp_path, total, words):
    line = f'write_bandwidth = {{ value = {total}, source = "s" }}\nserver_capacity'
    told = refusal(tmp_path, "server_capacity", line)
    for word in words:
        assert word in told, told


def test_capacities_that_contradict_are_named(tmp_path):
    told = refusal(tmp_path, "server_capacity", 'capacity = { value = "16 PB", source = "s" }\nserver_capacity')
    assert "storage.bb.capacity is 16 PB" in told and "prefix" in told


def test_more_stripes_than_servers_are_refused(tmp_path):
    told = refusal(tmp_path, "granularity", 'stripe_count = { value = 5, source = "s" }\ngranularity')
    assert "storage.bb.stripe_count is 5, but there are 4 servers" in told


@pytest.mark.parametrize("data", [b"\xff\xfe", b"x" * (2 << 20), b"", b"name = 1", b"storage = 3"])
def test_file_that_is_none_is_refused(tmp_path, data):
    refusal_of(tmp_path, data)


def test_file_of_the_emulation_alone_has_one_storage():
    machine = read_machine(PROJECT / "machines" / "lustre-small.toml")
    assert list(machine.storage) == ["pfs"] and machine.storage["pfs"].process_bytes_per_s == 250e6


def test_missing_file_and_directory_are_named(tmp_path):
    for named in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(PlanError, match=str(named)) as refused:
            read_machine(named)
        assert "machine list" in refused.value.hint


def test_fifo_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "m.toml")
    with pytest.raises(PlanError, match="not a regular file"):
        read_machine(tmp_path / "m.toml")


def test_report_says_that_a_file_of_the_planner_has_no_targets():
    with pytest.raises(ProfileError, match="for `forebay plan` alone") as refused:
        read_for_report(PROJECT / "machines" / "summit.toml")
    assert "forebay machines" in refused.value.hint


def test_unknown_storage_is_refused_with_those_that_exist():
    with pytest.raises(PlanError, match="no storage 'nvm'") as refused:
        read_machine(PROJECT / "machines" / "summit.toml").choose("nvm")
    assert "alpine, nvme" in refused.value.hint


def test_schema_refuses_what_the_reader_refuses():
    good = tomllib.loads(GOOD)
    jsonschema.validate(good, SCHEMA)
    for change in ({"value": "5 Gb/s", "source": "s"}, {"value": "5 GB/s"}, {"value": 5, "source": "s"}):
        bad = tomllib.loads(GOOD)
        bad["storage"]["bb"]["server_write_bandwidth"] = change
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(bad, SCHEMA)
