/* The parts of the time that one rank spends in I/O, in seconds. */
#ifndef HARNESS_TIMES_H
#define HARNESS_TIMES_H

struct io_times {
  double open_s; /* until data can be moved: open, view, definitions in a header */
  double write_s;
  double read_s;
  double sync_s;
  double close_s;
};

#endif
