"""Records of one file at regular distances: the mount reads ahead, and nobody reads anything old."""

import itertools

import pytest

from support.engines import ENGINES, namespace_of
from support.node_programs import lazily
from support.nodes import nodes
from support.strace import EVERY_POINT
from support.waiting import wait_until

LETTERS = "abcdefghijklmnopqrstuvwxyz"
ROUNDS = 1000 if EVERY_POINT else 60
RECORDS, RECORD_BYTES = 2000, 512
#: Columns of `/proc/net/dev`. A node's packets to itself count as well.
BYTES_RECEIVED, PACKETS_SENT = 2, 11


@pytest.fixture(scope="module")
def two(build):
    with nodes(2, build) as bed, namespace_of(bed, ENGINES["ceph"]) as namespace:
        yield namespace


numbers = itertools.count()


@pytest.fixture
def path(two):
    """An empty file."""
    path = two.directory / f"records-{next(numbers)}"
    two.run("n1", ["touch", path])
    yield path
    two.run("n1", ["rm", path])


def strictly(program, path, flags="O_RDWR"):
    file = program.call("open", path, flags)
    assert isinstance(file, int), file
    return file


def letter(number):
    return LETTERS[number % len(LETTERS)]


def written(program, path, count, length, distance):
    """Records, each of a letter."""
    file = strictly(program, path)
    for number in range(count):
        program.start("fill", file, number * distance, letter(number), length)
    assert {program.answer() for _ in range(count)} == {length}
    assert program.call("close", file) is None


def of_interfaces(two, column):
    """What all network interfaces of the reading node have counted."""
    count = f"awk '/:/ {{ sum += ${column} }} END {{ print sum }}' /proc/net/dev"
    return int(two.run("n1", ["sh", "-c", count]).stdout)


def wait_until_cached(two, reader, file):
    """The node that wrote may keep its rights for some seconds after it has closed the file."""

    def is_cached():
        before = of_interfaces(two, PACKETS_SENT)
        for _ in range(100):
            reader.call("read", file, 0, RECORD_BYTES)
        return of_interfaces(two, PACKETS_SENT) - before < 100

    wait_until(is_cached, seconds=30)


@pytest.mark.parametrize("opened", [strictly, lazily])
@pytest.mark.parametrize("distance", [1024, 20_000])
def test_near_records_of_another_node_need_fewer_requests_than_reads(two, programs, path, opened, distance):
    reader, writer = programs
    written(writer, path, RECORDS, RECORD_BYTES, distance)
    file = opened(reader, path, "O_RDWR")
    wait_until_cached(two, reader, file)
    before = of_interfaces(two, PACKETS_SENT)
    found = reader.call("records", file, RECORDS, RECORD_BYTES, distance)
    sent = of_interfaces(two, PACKETS_SENT) - before
    assert found == ["".join(map(letter, range(RECORDS))), True]
    assert sent < RECORDS / 2


@pytest.mark.parametrize("opened", [strictly, lazily])
def test_far_records_are_there_before_the_program_asks(two, programs, path, opened):
    reader, writer = programs
    count, length, distance = 30, 256 << 10, 2 << 20
    written(writer, path, count, length, distance)
    file = opened(reader, path, "O_RDWR")
    wait_until_cached(two, reader, file)
    before = of_interfaces(two, BYTES_RECEIVED)
    assert reader.call("records", file, 8, length, distance) == ["".join(map(letter, range(8))), True]
    # The daemons receive some 100 kB/s from each other.
    wait_until(lambda: of_interfaces(two, BYTES_RECEIVED) - before > 20 * length, seconds=10)


@pytest.mark.parametrize("closes", [False, True], ids=["stays-open", "closes"])
@pytest.mark.parametrize("distance", [2, 128], ids=["near", "far"])
@pytest.mark.parametrize("grows", [False, True], ids=["old-data", "grows"])
def test_record_that_another_node_just_wrote_is_read(programs, path, closes, distance, grows):
    reader, writer = programs
    if not grows:
        file = strictly(writer, path)
        writer.call("fill", file, 0, "0", (ROUNDS * distance + 1) * RECORD_BYTES)
        writer.call("close", file)
    ours, other = strictly(reader, path, "O_RDONLY"), strictly(writer, path)
    for number in range(ROUNDS):
        place = number * distance * RECORD_BYTES
        assert writer.call("fill", other, place, letter(number), RECORD_BYTES) == RECORD_BYTES
        if closes:
            writer.call("close", other)
        assert reader.call("read", ours, place, RECORD_BYTES) == letter(number) * RECORD_BYTES, number
        if closes:
            other = strictly(writer, path)


@pytest.mark.parametrize("distance", [2, 128], ids=["near", "far"])
def test_sync_forgets_what_was_read_ahead_lazily(programs, path, distance):
    reader, writer = programs
    ours, other = lazily(reader, path), lazily(writer, path)
    places = [number * distance * RECORD_BYTES for number in range(20)]
    for round_number in range(ROUNDS // 2):
        text = letter(round_number)
        for place in places:
            assert writer.call("fill", other, place, text, RECORD_BYTES) == RECORD_BYTES
        assert writer.call("sync", other) == 1
        assert reader.call("sync", ours) == 1
        # The last ones are written once more while they are read ahead.
        for place in places[:10]:
            reader.start("read", ours, place, RECORD_BYTES)
        for place in places[10:]:
            assert writer.call("fill", other, place, text.upper(), RECORD_BYTES) == RECORD_BYTES
        assert writer.call("sync", other) == 1
        assert [reader.answer() for _ in places[:10]] == [text * RECORD_BYTES] * 10, round_number
        assert reader.call("sync", ours) == 1
        for place in places[10:]:
            assert reader.call("read", ours, place, RECORD_BYTES) == text.upper() * RECORD_BYTES, round_number
