/* What programs call under the name of a hook is a jump through a slot (hook_slots.S), so that it
 * can be turned elsewhere while the program runs. */
#ifndef FOREBAY_MPI_HOOK_SLOTS_H
#define FOREBAY_MPI_HOOK_SLOTS_H

/* Past all hooks, for good: the program's MPI is not of our family, and a hook in C would pass on
 * handles of the wrong size. */
void hook_slots_bypass(void);

/* That a function exists is known by its name; programs that find one with large counts
 * (MPI_File_write_c) here, where their MPI has none, would call nothing. Those go to the function
 * with the smaller count, or return MPI_ERR_COUNT. */
void hook_slots_fill_gaps(void);

#endif
