/* Files of the replay itself. Opened without libc, so that a library in front of the replay, which
 * counts what it issues, does not count these. */
#ifndef FOREBAY_REPLAY_RAW_OPEN_H
#define FOREBAY_REPLAY_RAW_OPEN_H

/* As open, with permissions 0666. */
int raw_open(const char *path, int flags);

#endif
