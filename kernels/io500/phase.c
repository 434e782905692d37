#include "phase.h"

#include "bulk.h"
#include "find.h"
#include "items.h"
#include "placement.h"

#include <string.h>

#define IOR_EASY EASY_TRANSFER_BYTES, true, "ior-easy"
#define IOR_HARD HARD_TRANSFER_BYTES, false, "ior-hard"
#define MDTEST_EASY 0, true, "mdtest-easy"
#define MDTEST_HARD ITEM_BYTES, false, "mdtest-hard"

static const struct phase phases[] = {
    {"placement", 'r', 0, false, "", placement_print},
    {"ior-easy-write", 'w', IOR_EASY, bulk_write},
    {"mdtest-easy-write", 'w', MDTEST_EASY, items_create},
    {"ior-hard-write", 'w', IOR_HARD, bulk_write},
    {"mdtest-hard-write", 'w', MDTEST_HARD, items_create},
    {"find", 'r', 0, false, "", find_run},
    {"ior-easy-read", 'r', IOR_EASY, bulk_read},
    {"mdtest-easy-stat", 'r', MDTEST_EASY, items_stat},
    {"ior-hard-read", 'r', IOR_HARD, bulk_read},
    {"mdtest-hard-stat", 'r', MDTEST_HARD, items_stat},
    {"mdtest-easy-delete", 'w', MDTEST_EASY, items_delete},
    {"mdtest-hard-read", 'r', MDTEST_HARD, items_read},
    {"mdtest-hard-delete", 'w', MDTEST_HARD, items_delete},
    {"ior-rnd4K-easy-read", 'r', RANDOM_TRANSFER_BYTES, true, "ior-easy", bulk_read_random},
};

const struct phase *phase_named(const char *name) {
  for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
    if (strcmp(phases[i].name, name) == 0)
      return &phases[i];
  return NULL;
}
