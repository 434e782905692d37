/* The command line. */
#ifndef FOREBAY_REPLAY_OPTIONS_H
#define FOREBAY_REPLAY_OPTIONS_H

#include <stdbool.h>

enum { MAPS_MAX = 64 };

struct options {
  const char *trace;
  double think_share; /* of the time between calls that is waited */
  const char *directory;
  int map_count;
  const char *old[MAPS_MAX], *replacement[MAPS_MAX];
  bool in_place, overwrite, partial, print;
};

/* False, after a message if speaks, if the words make no sense. */
bool options_parse(int count, char **words, bool speaks, struct options *options);

extern const char usage[];

/* Where the file of the trace is to be, allocated; NULL if no option says so. */
char *options_target(const struct options *options, const char *path);

#endif
