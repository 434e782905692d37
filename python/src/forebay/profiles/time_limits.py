"""Which times a run can have. A source is input that anybody may have made or damaged."""

#: MPI counts ranks with an int.
RANKS_MAX = 2**31 - 1
#: A hundred years.
RUN_S_MAX = 100 * 366 * 86_400
#: Summed over ranks.
SUM_S_MAX = RUN_S_MAX * RANKS_MAX
#: Begins so that the longest run ends, in each time zone, in the year 9999, with which dates end.
START_UNIX_S_MAX = 253_402_300_799 - RUN_S_MAX - 2 * 86_400
#: Clocks count nanoseconds.
TICK_S = 1e-9
#: Less, and more than 0, is no difference of two moments, but damage.
NOTHING_S = 1e-12
