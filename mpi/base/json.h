/* JSON, member by member, into a text. */
#ifndef FOREBAY_MPI_JSON_H
#define FOREBAY_MPI_JSON_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* Members of an object are separated by commas; the first one has none before it. */
void separate(struct text *out);

void add_name(struct text *out, const char *name);
void add_integer(struct text *out, const char *name, int64_t value);

/* null if it is not known. */
void add_known(struct text *out, const char *name, bool is_known, int64_t value);

/* Not as a floating-point number: the program's locale may have a decimal comma. NAN is null. */
void add_seconds(struct text *out, const char *name, double value);

/* Without a name, as a member of an array. */
void open_object(struct text *out, const char *name);

/* NULL is null. */
void add_string(struct text *out, const char *name, const char *value);

#endif
