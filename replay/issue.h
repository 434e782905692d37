/* Issues the calls of this rank's trace. */
#ifndef FOREBAY_REPLAY_ISSUE_H
#define FOREBAY_REPLAY_ISSUE_H

#include "plan.h"

struct outcome {
  int64_t calls, bytes; /* issued; asked for by those that move data */
  int64_t
      skipped; /* not issued: another rank's trace lacks its part, or a type is not in the trace */
  int64_t differences;   /* succeeded here and failed in the trace, or the other way round */
  double io_s, think_s;  /* inside of calls, and waited between them */
  char difference[1024]; /* the first one */
};

/* False, after a message, if it cannot go on. */
bool issue_all(const struct plan *plan, const struct reader *reader, const struct options *options,
               struct outcome *outcome);

#endif
