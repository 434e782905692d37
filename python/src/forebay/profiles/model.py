"""One job's I/O, whatever recorded it.

Sizes are in bytes, times in seconds, moments in seconds since the program's MPI_Init (or since the log's
start). None means: this source does not tell. A reader never puts 0 for what it does not know, and never
drops a file for want of a counter.
"""

from __future__ import annotations

from typing import Literal

import msgspec

#: Upper ends of the ten classes of access sizes, Darshan's; the last has none.
SIZE_CLASS_ENDS = (100, 1024, 10240, 102400, 1048576, 4194304, 10485760, 104857600, 1073741824, None)
SIZE_CLASS_NAMES = (
    "0-100", "101-1K", "1K-10K", "10K-100K", "100K-1M", "1M-4M", "4M-10M", "10M-100M", "100M-1G", "1G+",
)  # fmt: skip

Direction = Literal["read", "write"]
LayerName = Literal["MPI-IO", "POSIX", "STDIO", "DFS", "DAOS"]
#: Darshan's names of streams that are no files.
STREAMS = frozenset({"<STDIN>", "<STDOUT>", "<STDERR>"})
#: From the application downwards. DFS and DAOS are interfaces of DAOS: the second without the first.
LAYERS: tuple[LayerName, ...] = ("MPI-IO", "POSIX", "STDIO", "DFS", "DAOS")


#: The path of what stands for all files without a record of their own (docs/explanation/profiles.md).
OTHER_FILES = "[other files]"


class Traffic(msgspec.Struct, kw_only=True):
    """What went one way through one layer of one file, summed over all ranks."""

    calls: int | None = None  # POSIX: system calls; MPI-IO: calls of the program, each rank's counted
    bytes: int | None = None
    sizes: list[int] | None = None  # calls in each of SIZE_CLASS_NAMES
    common_sizes: list[tuple[int, int]] = []  # (bytes, calls), the commonest first, at most four
    seconds: float | None = None  # summed over ranks
    slowest_rank_s: float | None = None  # the largest sum of any one rank
    slowest_rank_data_s: float | None = None  # MPI-IO: the largest data_s and other_system_s of any one rank
    slowest_rank_other_s: float | None = None
    first_s: float | None = None  # begin of the first call, end of the last
    last_s: float | None = None
    ranks: int | None = None  # that made such calls
    # POSIX: relative to the same rank's previous call of the same direction (Darshan's definitions)
    sequential: int | None = None  # began at or behind its end
    consecutive: int | None = None  # of these, exactly at its end
    gaps: int | None = None  # began behind its end, and the bytes skipped
    gap_bytes: int | None = None
    stripe_sized: int | None = None  # exactly one stripe unit, aligned where the source tells
    # MPI-IO: how `calls` divide
    independent: int | None = None
    collective: int | None = None
    nonblocking: int | None = None
    split: int | None = None
    # MPI-IO: in which the calls of the program passed their time, summed over ranks
    data_s: float | None = None  # in system calls that move data
    other_system_s: float | None = None  # in locks, seeks, truncation
    rest_s: float | None = None  # exchange between ranks, waiting for them, copying
    end_bytes: int | None = None  # behind the last byte of the file that was moved


class RankSeconds(msgspec.Struct, kw_only=True):
    """What one rank spent in a file."""

    rank: int
    read_s: float
    write_s: float
    metadata_s: float
    opens: int = 0
    stats: int = 0

    def sum(self) -> float:
        """All of it."""
        return self.read_s + self.write_s + self.metadata_s


class Layer(msgspec.Struct, kw_only=True):
    """One layer of one file."""

    read: Traffic
    write: Traffic
    opens: int | None = None
    seeks: int | None = None
    stats: int | None = None
    mapped_bytes: int | None = None  # of the file that were mapped into memory: read by that, up to so many
    mapped_to_write_bytes: int | None = None  # of these, shared and writable: written, up to so many
    name_calls: int | None = None  # further calls on names and directories: unlink, mkdir, readdir, ...
    syncs: int | None = None
    views: int | None = None  # MPI-IO: file views that were set
    switches: int | None = None  # POSIX: a read after a write, or a write after a read
    metadata_s: float | None = None  # opening, closing, asking; summed over ranks
    metadata_slowest_rank_s: float | None = None
    sync_s: float | None = None
    sync_slowest_rank_s: float | None = None
    not_aligned: int | None = None  # calls that begin off `alignment_bytes`
    alignment_bytes: int | None = None
    opened_s: float | None = None  # first open begins, last close ends
    closed_s: float | None = None
    slowest_rank_s: float | None = (
        None  # of the one rank that spent most here: reads, writes, metadata together
    )
    rank_s: list[RankSeconds] = []  # of each rank that used the file; empty where the source does not tell


class WithoutEffect(msgspec.Struct, kw_only=True):
    """A hint that was asked for and not obeyed."""

    key: str
    asked: str
    seen: str


class Hints(msgspec.Struct, kw_only=True):
    """Hints of one file."""

    environment: dict[str, str] = {}  # asked for in MPICH_MPIIO_HINTS
    program: dict[str, str] = {}  # asked for by the program itself
    in_force: dict[str, str] | None = None  # as the MPI tells; None: it does not tell
    without_effect: list[WithoutEffect] = []


class Writer(msgspec.Struct, kw_only=True):
    """A rank that moved data of a file by system calls."""

    rank: int
    bytes: int
    calls: int
    seconds: float | None = None
    aggregator: bool | None = None  # did so inside of a collective call


class Collective(msgspec.Struct, kw_only=True):
    """Collective buffering and data sieving of one file."""

    aggregators_write: int | None = None
    aggregators_read: int | None = None
    active: list[int] | None = None  # collective writes in which 1; <= half; > half; all aggregators wrote
    rmw_calls: int | None = None  # reads that writes made necessary
    rmw_bytes: int | None = None  # these returned: 0 where they read holes
    rmw_s: float | None = None  # they took, summed over ranks


class Extreme(msgspec.Struct, kw_only=True):
    """The fastest or the slowest rank of a shared file."""

    rank: int
    seconds: float
    bytes: int


class File(msgspec.Struct, kw_only=True):
    """One file, or stream."""

    path: str
    layers: dict[LayerName, Layer]
    ranks: int | None = None  # that opened it
    mount: str | None = None
    file_system: str | None = None
    stripe_count: int | None = None
    stripe_bytes: int | None = None
    targets: list[int] = []  # storage targets that hold it, by number
    opened_by: str | None = None  # what implements MPI-IO: mca_io_romio321.so, mca_fs_ufs.so ...
    hints: Hints | None = None
    collective: Collective | None = None
    writers: list[Writer] = []
    fastest: Extreme | None = None
    slowest: Extreme | None = None
    not_closed: int | None = None
    lazy_opens: int | None = None  # through MPI-IO, which buffer writes until sync and close
    rank: int | None = None  # the only one that opened it


class Heat(msgspec.Struct, kw_only=True):
    """Bytes by rank and time at one layer. `read[row][bin]`; a row is `ranks_per_row` neighbouring ranks."""

    layer: LayerName
    bin_s: float
    ranks_per_row: int
    read: list[list[int]]
    write: list[list[int]]


class LibraryObject(msgspec.Struct, kw_only=True):
    """A file, dataset or variable of a library above MPI-IO, summed over all ranks."""

    library: Literal["HDF5", "PnetCDF"]
    kind: Literal["file", "dataset", "variable"]
    path: str  # of a dataset or variable: that of its file, and its name
    opens: int | None = None
    reads: int | None = None
    writes: int | None = None
    collective: int | None = None  # of reads and writes
    nonblocking: int | None = None
    syncs: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    read_s: float | None = None
    write_s: float | None = None
    metadata_s: float | None = None
    wait_s: float | None = None  # PnetCDF: for non-blocking calls


class LogModule(msgspec.Struct, kw_only=True):
    """A module of a Darshan log."""

    name: str
    version: int  # of the format of its records
    complete: bool  # False: the runtime library had no memory for all records
    read: bool  # False: its version is newer than the reader knows, or the profile has nothing of it


class LogFormat(msgspec.Struct, kw_only=True):
    """What wrote a Darshan log, and in which formats."""

    version: str  # of the format of the log
    writer: str | None  # name and version: Darshan's runtime library, or Forebay
    modules: list[LogModule]


class KernelCount(msgspec.Struct, kw_only=True):
    """Bytes that ranks on one host moved by system calls, as the kernel counts them, in files, pipes and
    terminals. Of ranks that descend from the process of the job's `forebay`, it has the count itself.
    """

    host: str
    ranks: int
    read_bytes: int
    written_bytes: int
    elsewhere_read_bytes: int  # of these, in pipes, terminals and files that are not recorded
    elsewhere_written_bytes: int  # of these, in pipes, terminals and files that are not recorded


class Program(msgspec.Struct, kw_only=True):
    """One program of the job: one `mpiexec`, or one process without MPI."""

    files: list[File]
    name: str | None = None  # executable's path
    arguments: list[str] = []
    mpi: str | None = None  # what the MPI calls itself; None: no MPI, or not known
    uses_mpi: bool | None = None
    ranks: int | None = None
    hosts: int | None = None
    host: str | None = None  # of rank 0
    kernel_counts: list[KernelCount] = []  # of ranks of which `forebay` has no count
    counted_ranks: int | None = None  # whose count the record or `forebay` has; None: not known
    started_unix_s: float | None = None
    wall_s: float | None = None
    finished: bool = True  # False: it ended without MPI_Finalize; nothing is known of its files, unless
    recovered: bool = False  # it left its counters; `wall_s` is then until its last recorded call
    torn: bool = False  # a part of those is damaged
    heat: list[Heat] = []
    files_dropped: int = 0
    trace: str | None = None  # directory of its trace
    libraries: list[str] = []  # above MPI-IO, that the source names: HDF5, PnetCDF
    objects: list[LibraryObject] = []  # of these libraries
    log: LogFormat | None = None  # of a Darshan log
    io_s: float | None = None  # in I/O calls of the program, all files and layers; summed over ranks
    io_slowest_rank_s: float | None = None  # the same of the rank that spent most
    aborted_rank: int | None = None  # that called MPI_Abort, and with which code
    aborted_code: int | None = None


class Staging(msgspec.Struct, kw_only=True):
    """Stage-in or stage-out."""

    files: int
    bytes: int
    seconds: float
    failures: int = 0


class FailedWrite(msgspec.Struct, kw_only=True):
    """The first write of a file that failed for lack of space or quota, or by an I/O error."""

    path: str
    error: str  # ENOSPC, EDQUOT or EIO
    call: str
    unix_us: int


class Allocation(msgspec.Struct, kw_only=True):
    """The allocation of a job on several nodes."""

    engine: str  # the file system over the nodes
    nodes: list[str]  # their names; the first is that of `forebay run`
    redundancy: int  # copies of the data
    share_bytes: int | None  # what it takes of each node's store at most; null if it is not in the stores
    failed: str | None  # why operations on the job's files failed


class Job(msgspec.Struct, kw_only=True):
    """The job as a whole."""

    id: str | None = None
    name: str | None = None
    command: str | None = None
    directory: str | None = None
    user: str | None = None
    host: str | None = None
    nodes: int | None = None
    started_unix_s: float | None = None
    wall_s: float | None = None  # of the job's script or program, without staging
    exit_code: int | None = None  # of `forebay run`
    job_status: int | None = None  # of the script
    running: bool = False
    error: str | None = None  # why it was not started
    hint: str | None = None
    emulated: str | None = None  # name of the emulated file system
    store: str | None = None
    capacity_bytes: int | None = None
    allocation: Allocation | None = None  # on several nodes; null on one
    stage_in: Staging | None = None
    stage_out: Staging | None = None
    kept: str | None = None  # where undelivered data lie
    environment: dict[str, str] = {}  # variables that bear on I/O
    kind: Literal["run", "profile"] | None = None
    scheduler_id: str | None = None
    script: str | None = None
    killed: bool = False  # it says that it runs, and its process is gone
    unseen: bool = False  # it says that it runs, on a machine or in a container that cannot be seen from here
    left: bool = False  # it holds an allocation, processes or files until `forebay clean` has seen to it
    ended_by_signal: int | None = None  # sent to `forebay run`
    over_time_limit: bool = False
    deadline_told_by: str | None = None  # of a job that was ended, or got a signal, before that deadline
    ended_for_stage_out: bool = False  # before the deadline, so that its stage-out had time
    failures: list[str] = []  # what could not be staged: path and reason
    cleaned: bool = False  # killed, and `forebay clean` has seen to what was left
    failed_writes: list[FailedWrite] = []  # oldest first
    store_was_full: bool = False
    incomplete: list[str] = []  # where staged files lie that may be incomplete
    undelivered: bool = False  # not all that was to be staged out arrived, or may have


class Coverage(msgspec.Struct, kw_only=True):
    """How much of what programs read and wrote by system calls is recorded."""

    counted_bytes: int  # by the kernel: in files, pipes, terminals
    elsewhere_bytes: int  # of these, in pipes, terminals and files that are not recorded
    recorded_bytes: int  # in recorded files
    missing_bytes: int  # the rest: programs without the recording, and programs too small for a record
    share: float | None  # of recorded and missing bytes, the recorded ones; None: fewer than 4 MiB


class Bypass(msgspec.Struct, kw_only=True, frozen=True):
    """A program whose I/O goes around the recording."""

    program: str
    how: str  # io_uring, kernel_aio, foreign_mpi: a part; mpi: MPI-IO; static, setuid, 32-bit: all of it


class Profile(msgspec.Struct, kw_only=True):
    """Everything one source tells about one job."""

    source: Literal["forebay", "darshan", "cray"]
    path: str
    job: Job
    programs: list[Program]
    notes: list[str] = []  # what is missing from the source, and why: to be shown with every report
    unread: list[
        str
    ] = []  # what else may have moved data: bytes and seconds are at least those in the profile
    coverage: Coverage | None = None
    coverage_unknown: str | None = None  # why there is none
    bypassed: list[Bypass] = []  # programs of whose I/O nothing, or not all, is recorded
