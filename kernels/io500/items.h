/* mdtest-easy and mdtest-hard: many files, each created, looked at, read and deleted. */
#ifndef IO500_ITEMS_H
#define IO500_ITEMS_H

#include "phase.h"

/* Creates files until the stonewall; each node then syncs its file system. */
bool items_create(struct benchmark *benchmark);

/* These act on the partner's files, `limit` of them. */
bool items_stat(struct benchmark *benchmark);
bool items_read(struct benchmark *benchmark);

/* Removes the directories, too, once they are empty. */
bool items_delete(struct benchmark *benchmark);

#endif
