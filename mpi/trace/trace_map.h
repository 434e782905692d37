/* From a handle or a pointer to a small number; a fixed table, nothing is allocated. */
#ifndef FOREBAY_MPI_TRACE_MAP_H
#define FOREBAY_MPI_TRACE_MAP_H

#include <stdbool.h>
#include <stdint.h>

enum { TRACE_MAP_SLOTS = 8192, TRACE_MAP_ENTRIES_MAX = TRACE_MAP_SLOTS / 2 };

struct trace_map {
  struct {
    uint64_t key;
    int64_t value; /* number + 1; 0: the slot is empty */
  } slots[TRACE_MAP_SLOTS];
  int count;
};

/* Handles are pointers in one family of MPI and integers in the other. */
#define TRACE_KEY(handle) ((uint64_t)(uintptr_t)(handle))

/* -1: not there. */
int64_t trace_map_find(const struct trace_map *map, uint64_t key);

/* False if the table is full. A key that is there gets the new number. */
bool trace_map_set(struct trace_map *map, uint64_t key, int64_t number);

/* The number it had, or -1. */
int64_t trace_map_remove(struct trace_map *map, uint64_t key);

void trace_map_clear(struct trace_map *map);

#endif
