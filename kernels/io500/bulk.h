/* ior-easy and ior-hard: large and small transfers by POSIX calls, with every byte compared. */
#ifndef IO500_BULK_H
#define IO500_BULK_H

#include "phase.h"

/* Creates the files, writes until the stonewall, and syncs them. An old file is refused. */
bool bulk_write(struct benchmark *benchmark);

/* Reads what the partner wrote, `limit` transfers. */
bool bulk_read(struct benchmark *benchmark);

/* Reads 4 KiB at random places of the partner's file until the stonewall. `limit`: the transfers of
 * 2 MiB that the file has. */
bool bulk_read_random(struct benchmark *benchmark);

#endif
