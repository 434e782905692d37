"""Reading the times of calls in traces: as the replay prints them, damaged, cut, and of many ranks."""

import io
import pathlib
import tarfile

import pytest
from support.trace_files import block, call, file_of, number, signed

from forebay.profiles import trace
from forebay.profiles.errors import ProfileError

KEPT = pathlib.Path(__file__).parents[1] / "formats" / "record.tar.gz"
#: What `forebay-replay --print` prints of rank 0, without its stream: begin, end and activity; times in ticks of 100 ns.
RANK_0 = [
    (1321, 34631, "metadata"),  # open, with a system call in it
    (35387, 35507, "waiting"), (35507, 35723, "write"), (35723, 35748, "waiting"),
    (36152, 36157, "waiting"), (36157, 36178, "write"), (36178, 36181, "waiting"),
    (36210, 37163, "metadata"), (37399, 38025, "metadata"), (38279, 38425, "write"), (38437, 38641, "metadata"),
]  # fmt: skip


@pytest.fixture
def kept(tmp_path):
    """The directory of the trace of the kept record."""
    with tarfile.open(KEPT) as archive:
        for member in archive.getmembers():
            if member.name.endswith(".trace"):
                (tmp_path / pathlib.Path(member.name).name).write_bytes(archive.extractfile(member).read())
    return tmp_path


def ticks(one: trace.RankCalls, later: int = 0) -> list[tuple[int, int, str]]:
    return [(round(span.begin_s * 1e7) - later, round(span.end_s * 1e7) - later, span.activity) for span in one.spans]


def test_spans_are_the_calls_that_the_replay_prints(kept):
    found = trace.read(kept)
    assert (found.ranks, [one.rank for one in found.read], [one.calls for one in found.read]) == (2, [0, 1], [7, 7])
    first = ticks(found.read[0])
    assert ticks(found.read[0], first[0][0] - 1321) == RANK_0 and not found.read[0].damaged
    assert found.length_s == max(span.end_s for one in found.read for span in one.spans)


def test_inks_are_those_of_the_time_bar(tmp_path):
    calls = (
        call(0x01, 0, 0)[:1] + b"\x02/f",
        call(0x36, 10, 5), call(0x37, 5, 10), call(0x93, -30, 50),  # write_at_all: reads, then writes
        call(0x36, 10, 10), call(0x81, -15, 20),  # read_at_all
        call(0x1A, 5, 7, signed(0)), call(0x24, 5, 3, signed(0)), call(0x46, 5, 4), call(0x28, 5, 2, signed(0)),
    )  # fmt: skip
    (tmp_path / "rank-000000.trace").write_bytes(file_of(*calls))
    (one,) = trace.read(tmp_path).read
    assert [(end - begin, activity) for begin, end, activity in ticks(one)] == [
        (10, "waiting"), (5, "rmw"), (5, "waiting"), (10, "write"), (20, "waiting"),
        (5, "waiting"), (10, "read"), (5, "waiting"), (7, "sync"), (3, "sync"), (4, "read"), (2, "metadata"),
    ]  # fmt: skip
    assert one.calls == 6


def test_system_calls_of_an_operation_that_goes_on_are_drawn_by_themselves(tmp_path):
    calls = (call(0x94, 0, 5), call(0x37, 5, 100), call(0x1C, -20, 30, number(1) + signed(0)))
    (tmp_path / "rank-000000.trace").write_bytes(file_of(*calls))
    (one,) = trace.read(tmp_path).read
    assert ticks(one) == [(0, 5, "waiting"), (10, 110, "write"), (90, 120, "waiting")]


def test_ranks_share_one_clock(tmp_path):
    for rank, begun_ns in enumerate((5_000, 2_000)):
        content = file_of(call(0x28, 10, 10, signed(0)), begun_ns=begun_ns)
        (tmp_path / f"rank-{rank:06}.trace").write_bytes(content)
    found = trace.read(tmp_path)
    assert [ticks(one) for one in found.read] == [[(40, 50, "metadata")], [(10, 20, "metadata")]]


def test_truncated_or_damaged_trace_is_read_up_to_there_and_marked(kept):
    path = kept / "rank-000000.trace"
    whole = path.read_bytes()
    before = len(trace.read(kept).read[0].spans)
    refused = 0
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        first = trace.read(kept).read[0]
        refused += first.rank == 1
        assert first.rank == 1 or (first.damaged and len(first.spans) <= before)
    assert 0 < refused < 120, "only without its header it cannot be read"
    for at in range(refused, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        assert trace.read(kept).read[0].damaged, at


@pytest.mark.parametrize("nonsense", [b"\x1d\0\0\0", b"\x0e\xff\x7f", b"\xff\0\0\0", b"\x1c\0\0\0\xff\xff\xff\x7f"])
def test_record_that_makes_no_sense_is_damage(tmp_path, nonsense):
    (tmp_path / "rank-000000.trace").write_bytes(file_of(call(0x28, 0, 9, signed(0)), nonsense))
    (one,) = trace.read(tmp_path).read
    assert one.damaged and len(one.spans) == 1


def test_directory_without_a_trace_is_refused(tmp_path):
    (tmp_path / "rank-1.trace").write_bytes(b"")
    with pytest.raises(ProfileError, match="no trace"):
        trace.read(tmp_path)


def test_of_large_traces_and_many_ranks_a_part_is_read(tmp_path, monkeypatch):
    calls = [call(0x28, 1, 1, signed(0)) for _ in range(100)]
    blocks = b"".join(map(block, calls))
    content = file_of(trailer=b"\x28\0\0\1\0") + blocks
    for rank in range(100):
        (tmp_path / f"rank-{rank:06}.trace").write_bytes(content)
    assert [one.rank for one in trace.read(tmp_path).read] == [at * 100 // 32 for at in range(32)]
    monkeypatch.setattr(trace, "BYTES_MAX", 16 * len(content))
    assert len(trace.read(tmp_path).read) == 16
    monkeypatch.setattr(trace, "BYTES_MAX", 4 * len(content))
    cut = trace.read(tmp_path).read
    assert len(cut) == 8 and all(not one.damaged and 40 < one.calls < 60 for one in cut)
    assert all(one.cut_s == one.spans[-1].end_s for one in cut)


def test_checksum_is_that_of_the_format(kept):
    content = (kept / "rank-000000.trace").read_bytes()
    stream = io.BytesIO(content[8:])
    while head := stream.read(8):
        assert trace._checksum(stream.read(int.from_bytes(head[:4], "little"))) == int.from_bytes(head[4:], "little")
