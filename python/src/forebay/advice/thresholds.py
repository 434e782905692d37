"""Where a rule begins to speak. Each number has its source; what is ours was chosen on the logs in our tests.

Drishti: thresholds of Drishti 0.8, an adviser on Darshan logs. KAUST18: KAUST's talk on burst buffers, 2018.
CRAY12: Cray's course on parallel I/O, 2012. NERSC16: NERSC's paper on early use of its burst buffer, 2016.
"""

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

#: Below this share of the run time, of the slowest rank, there is nothing to gain. Ours.
IO_SHARE_MIN = 0.05
#: A finding about less of the run time is a note; about less still, nothing. Ours.
FINDING_SHARE_MIN = 0.02
NOTE_SHARE_MIN = 0.005
#: A file that takes less of the run time is not looked at. Ours.
FILE_SHARE_MIN = 0.01
#: Where no times are known: a file that moves less of the program's bytes is not looked at. Ours.
FILE_BYTES_SHARE_MIN = 0.001

#: Drishti: so many small calls. Ours: the sizes, which are upper ends of classes in a histogram of sizes, and
#: the share of the calls: one small call for each large one is an index, or a header.
SMALL_CALLS_MIN = 1000
SMALL_CALL_BYTES = 102_400
SMALL_SHARE_MIN = 0.6
#: A mean so many times the limit: few large calls move the bytes, and take the time. Ours.
BULK_RATIO_MIN = 10
#: Drishti: such a share of calls that go back is random access.
RANDOM_SHARE_MIN = 0.2
#: Drishti: such a share of calls that begin off the alignment.
NOT_ALIGNED_SHARE_MIN = 0.1
#: Calls so large are left alone: the border inside of one costs little of it. Ours.
LARGE_CALL_BYTES = 4 * MIB
#: Of files opened without MPI-IO: the page cache joins calls of a few KiB and more well enough. Ours.
SMALL_LOCAL_CALL_BYTES = 10_240
#: Streams have a buffer; only a very large number of calls costs time. Ours.
STREAM_CALLS_MIN = 100_000

#: Collective buffering makes system calls at least about as large as what one rank asks for. Ours.
SPLIT_CALLS_MIN = 100
SPLIT_RATIO_MAX = 0.25
#: Calls of so many bytes are of a buffer: without one, pieces and blocks of data sieving are smaller. Ours.
BUFFERED_CALL_BYTES_MIN = MIB
#: Collective calls that move so little on each rank that agreeing on them takes longer. Ours.
SMALL_COLLECTIVE_BYTES = 10_240
SMALL_COLLECTIVE_PER_RANK_MIN = 100
#: Such a share of the time in collective calls is spent between ranks, and the calls are so large. Ours.
OVERHEAD_SHARE_MIN = 0.6
OVERHEAD_CALL_BYTES_MIN = MIB
#: KAUST18: two ranks or more for each aggregator, several aggregators for each node. Ours: from 4 ranks.
RANKS_PER_AGGREGATOR_MIN = 4
#: Such a file fills more than one buffer of an aggregator, so that more aggregators have work. Ours.
AGGREGATED_BYTES_MIN = 8 * MIB
AGGREGATED_CALL_BYTES_MIN = MIB
#: Cray's statistics: such a share of rounds with one aggregator at work; so many rounds, aggregators. Ours.
IDLE_ROUNDS_SHARE_MIN = 0.75
IDLE_ROUNDS_MIN = 10
IDLE_AGGREGATORS_MIN = 4
#: The busiest aggregator against their mean. Ours.
UNEVEN_RATIO_MIN = 2.0

#: KAUST18: stripe units near the mean system call. Ours: speak when so few calls are one unit and the mean is
#: so much smaller, for so many calls; propose no units below Lustre's smallest.
STRIPE_SHARE_MAX = 0.5
STRIPE_MEAN_RATIO_MAX = 0.75
STRIPE_CALLS_MIN = 100
STRIPE_UNIT_BYTES_MIN = 64 * KIB
#: Darshan tells stripes of Lustre only, where smaller units than its default gain nothing. Ours.
LUSTRE_UNIT_BYTES_MIN = MIB
#: A file of so many bytes has work for several targets; from 1 GiB on, one target is a problem. Ours.
ONE_STRIPE_BYTES_MIN = 32 * MIB
#: Of the file on each target; targets, where their number is not known. Ours.
STRIPE_BYTES_MIN = 4 * MIB
STRIPES_MAX = 64

#: Bytes read to write, of the bytes written. Ours.
RMW_SHARE_MIN = 0.1
RMW_BYTES_MIN = MIB
#: Reads made to write, of the writes, and so much more written than asked for: reads of holes have no bytes.
#: Ours.
RMW_CALLS_MIN = 100
RMW_CALLS_SHARE_MIN = 0.25
RMW_AMPLIFIED_MIN = 1.2
#: Bytes that the system reads, of those that independent calls ask for. Ours.
SIEVED_RATIO_MIN = 2.0
#: A file read so many times over, and so many bytes more than it has. Ours.
REREAD_RATIO_MIN = 1.5
REREAD_BYTES_MIN = 16 * MIB
#: Smaller files stay in caches: what they cost is opens. Ours.
REREAD_FILE_BYTES_MIN = MIB

#: Time in opening, closing and asking, of the time in I/O. Ours; Drishti's 30 s depend on the run's length.
METADATA_SHARE_MIN = 0.5
#: Of one rank: fewer opens than this cannot be saved. Ours.
OPENS_PER_RANK_MIN = 10
#: An open that takes so long on average waits for somebody; more opens of a file are a load. Ours.
BLOCKED_OPEN_S_MIN = 60.0
BLOCKED_OPENS_MAX = 16
#: So many questions for attributes; so many by one rank alone, and its share of all of them. Ours.
STATS_MIN = 1000
ONE_RANK_STATS_MIN = 100
ONE_RANK_STATS_SHARE_MIN = 0.9
#: CRAY12: many files make metadata the bottleneck. The numbers are ours.
SMALL_FILES_MIN = 1000
SMALL_FILE_BYTES = MIB
#: Opens of one small file by everybody. Ours.
SHARED_OPENS_MIN = 256
BYTES_PER_OPEN_MAX = MIB
#: So many of such files, opened by such a share of the ranks, the first in this part of the run. Ours.
IMPORT_FILES_MIN = 20
IMPORT_SUFFIXES = frozenset({".py", ".pyc", ".pyd", ".jl", ".ji", ".jar", ".R", ".rdb", ".rdx", ".m"})
IMPORT_RANKS_SHARE_MIN = 0.5
IMPORT_BEGIN_SHARE_MAX = 0.25
#: One rank that moves such a share of a file's bytes moves it alone. Ours.
SOLE_RANK_SHARE_MIN = 0.95
#: Syncs: so many, for each rank, and such a share of the time in I/O; of the write calls, if their time is
#: not known. Ours.
SYNCS_MIN = 100
SYNCS_PER_RANK_MIN = 10
SYNC_SHARE_MIN = 0.2
SYNCS_PER_WRITE_MIN = 0.1
#: One rank that moves such a share of the bytes of a program of so many ranks. Ours.
ONE_RANK_SHARE_MIN = 0.8
ONE_RANK_RANKS_MIN = 4
ONE_RANK_BYTES_MIN = 64 * MIB
#: A rank that takes so many times the time of the median rank, for at most so many times its bytes and calls;
#: of so large a share of the ranks it is the rule. Ours.
STRAGGLER_RATIO_MIN = 3.0
STRAGGLER_WORK_RATIO_MAX = 1.5
STRAGGLER_RANKS_SHARE_MAX = 0.1
STRAGGLER_RANKS_MIN = 4
#: Of a rank or target: less is noise. Ours.
SLOWER_S_MIN = 1.0
#: A storage target whose files take so many times as long for each byte as those of the median target; of so
#: many targets with so many files of such a size, and at most such a share of them. Ours.
SLOW_TARGET_RATIO_MIN = 3.0
SLOW_TARGETS_MIN = 4
TARGET_FILES_MIN = 3
TARGET_FILE_BYTES_MIN = MIB
SLOW_TARGETS_SHARE_MAX = 0.25
