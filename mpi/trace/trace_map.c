#include "trace/trace_map.h"

#include <string.h>

static uint32_t first_slot(uint64_t key) {
  return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 40) & (TRACE_MAP_SLOTS - 1);
}

/* Half of the slots are always empty, so the search ends. */
static uint32_t probe(const struct trace_map *map, uint64_t key) {
  uint32_t at = first_slot(key);
  while (map->slots[at].value != 0 && map->slots[at].key != key)
    at = (at + 1) & (TRACE_MAP_SLOTS - 1);
  return at;
}

int64_t trace_map_find(const struct trace_map *map, uint64_t key) {
  return map->slots[probe(map, key)].value - 1;
}

bool trace_map_set(struct trace_map *map, uint64_t key, int64_t number) {
  uint32_t at = probe(map, key);
  bool is_new = map->slots[at].value == 0;
  if (is_new && map->count >= TRACE_MAP_ENTRIES_MAX)
    return false;
  map->count += is_new;
  map->slots[at].key = key;
  map->slots[at].value = number + 1;
  return true;
}

int64_t trace_map_remove(struct trace_map *map, uint64_t key) {
  uint32_t hole = probe(map, key);
  int64_t number = map->slots[hole].value - 1;
  if (number < 0)
    return -1;
  map->count--;
  /* What was stored further on because this slot was taken moves up. */
  for (uint32_t at = hole;;) {
    at = (at + 1) & (TRACE_MAP_SLOTS - 1);
    if (map->slots[at].value == 0)
      break;
    uint32_t from_home = (at - first_slot(map->slots[at].key)) & (TRACE_MAP_SLOTS - 1);
    if (from_home >= ((at - hole) & (TRACE_MAP_SLOTS - 1))) {
      map->slots[hole] = map->slots[at];
      hole = at;
    }
  }
  map->slots[hole].value = 0;
  return number;
}

void trace_map_clear(struct trace_map *map) { memset(map, 0, sizeof *map); }
