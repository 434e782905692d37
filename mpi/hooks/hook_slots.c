#include "hooks/hook_slots.h"

#include "base/real_call.h"

#include <stddef.h>

/* Filled by hook_slots.S; the linker names begin and end of the section. */
struct jump {
  const char *name;
  void *to;
  void *instead; /* if the MPI has no such function; NULL: every MPI has it */
};
extern struct jump __start_forebay_jumps[], __stop_forebay_jumps[];

static void set_jump_target(struct jump *jump, void *to) {
  __atomic_store_n(&jump->to, to, __ATOMIC_RELAXED);
}

void hook_slots_bypass(void) {
  for (struct jump *jump = __start_forebay_jumps; jump < __stop_forebay_jumps; jump++) {
    void *next = real_find(jump->name);
    set_jump_target(jump, next != NULL ? next : jump->instead);
  }
}

void hook_slots_fill_gaps(void) {
  for (struct jump *jump = __start_forebay_jumps; jump < __stop_forebay_jumps; jump++)
    if (jump->instead != NULL && real_find(jump->name) == NULL)
      set_jump_target(jump, jump->instead);
}
