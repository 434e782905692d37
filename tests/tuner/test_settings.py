"""The settings themselves: what all have, and the numbers that they choose from."""

import pathlib

import pytest

from forebay.tune import settings
from forebay.tune.errors import TuneError
from forebay.tune.settings.setting import doubled, powers_near
from forebay.tune.settings.buffer_size import sizes
from forebay.tune.settings.lustre import mounted_as
from forebay.tune.settings.striping_hints import stripe_counts, units

KIB, MIB = 1 << 10, 1 << 20
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"


def test_each_setting_is_documented_with_a_source():
    told = DOCUMENT.read_text()
    names = [setting.name for setting in settings.ALL]
    assert len(set(names)) == len(names)
    for setting in settings.ALL:
        assert f"`{setting.name}`" in told and setting.source
        assert settings.named(setting.name) is setting


def test_unknown_setting_is_an_error_that_names_the_known_ones():
    with pytest.raises(TuneError, match="bb_nodes: no such setting") as caught:
        settings.named("bb_nodes")
    assert "cb_nodes" in caught.value.hint


@pytest.mark.parametrize(
    ("targets", "units_in_file", "with_one", "counts"),
    [
        (8, 100, False, [2, 4, 8]),
        (6, 100, True, [1, 2, 4, 6]),
        (6, 5, False, [2, 4]),
        (1, 100, True, [1]),
        (None, 10, False, [2, 4, 8]),
    ],
)
def test_stripe_counts_are_offered(targets, units_in_file, with_one, counts):
    assert stripe_counts(targets, units_in_file, with_one=with_one) == counts


@pytest.mark.parametrize(
    ("mean_bytes", "file_bytes", "sizes_kib"),
    [
        (None, 8 * MIB, [256, 1024, 4096]),
        (480, 100 * MIB, [64, 256, 1024, 4096, 16384]),
        (70_000, 2 * MIB, [64, 256, 1024]),
        (3_800_000, 3 * MIB, [256, 1024]),
        (240, 67 * KIB, [64]),
        (240, 20 * KIB, [64]),
    ],
)
def test_stripe_units_are_offered(mean_bytes, file_bytes, sizes_kib):
    assert units(mean_bytes, file_bytes) == [one * KIB for one in sizes_kib]


@pytest.mark.parametrize(
    ("round_bytes", "default_bytes", "sizes_mib"),
    [
        (MIB, 16 * MIB, []),
        (3 * MIB, 16 * MIB, [1]),
        (10 * MIB, 16 * MIB, [1, 4]),
        (100 * MIB, 16 * MIB, [1, 4, 64]),
        (10 * MIB, 4 * MIB, [1, 16]),
    ],
)
def test_buffer_sizes_around_one_call_are_offered(round_bytes, default_bytes, sizes_mib):
    assert sizes(round_bytes, default_bytes) == [one * MIB for one in sizes_mib]


def test_powers_of_two_are_offered():
    assert [powers_near(number) for number in (1, 3, 1000, 1_400_000, 380_000)] == [1, 4, 1024, MIB, 512 * KIB]
    assert doubled(2, 9) == [2, 4, 8]


def test_file_system_of_a_path_is_that_of_the_deepest_mount():
    assert mounted_as("/proc/self/maps") == "proc"
    assert mounted_as("/nothing/there") == mounted_as("/")
