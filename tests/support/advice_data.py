"""Profiles made up to be advised on, and what is asked of the advice."""

from forebay.advice.advise import findings
from forebay.profiles.model import File, Job, Layer, Profile, Program, Traffic


def codes(profile, **options):
    return [finding.code for finding in findings(profile, **options)]


def only(profile, code, **options):
    (found,) = [finding for finding in findings(profile, **options) if finding.code == code]
    assert found.evidence and found.rule and found.source and found.action
    return found


def shared(path="/scratch/out.nc", *, write=None, system=None, read=None, system_read=None, ranks=16, **members):
    """A file that `ranks` ranks share through MPI-IO."""
    none = {"calls": 0, "bytes": 0, "independent": 0, "collective": 0}
    mpiio = Layer(read=Traffic(**(none | (read or {}))), write=Traffic(**(none | (write or {}))), metadata_s=0.1)
    posix = Layer(read=Traffic(**(none | (system_read or {}))), write=Traffic(**(none | (system or {}))))
    return File(path=path, layers={"MPI-IO": mpiio, "POSIX": posix}, ranks=ranks, **members)


def profile_of(*files, ranks=16, hosts=1, wall_s=100.0, job=None, **members):
    program = Program(files=list(files), ranks=ranks, hosts=hosts, wall_s=wall_s, uses_mpi=True, **members)
    return Profile(source="forebay", path="x", job=job or Job(), programs=[program])


#: 16 ranks write 4 GiB by collective calls: a call of 16 MiB each, 256 times 16 MiB from one aggregator.
GOOD = {"calls": 256, "collective": 256, "bytes": 4 << 30, "seconds": 800.0, "slowest_rank_s": 50.0}
GOOD_SYSTEM = {"calls": 256, "bytes": 4 << 30, "seconds": 160.0}


def local(
    path,
    *,
    calls=10,
    moved=0,
    read=False,
    seconds=1.0,
    rank=0,
    ranks=1,
    opens=1,
    metadata_s=0.0,
    name="POSIX",
    **traffic,
):
    way = Traffic(calls=calls, bytes=moved, seconds=seconds, **traffic)
    none = Traffic(calls=0, bytes=0, seconds=0.0)
    layer = Layer(read=way if read else none, write=none if read else way, opens=opens, metadata_s=metadata_s)
    return File(path=path, layers={name: layer}, ranks=ranks, rank=rank if ranks == 1 else None)
