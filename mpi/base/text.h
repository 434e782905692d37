/* A string that grows. If memory ends it stays as it is and says so. */
#ifndef FOREBAY_MPI_TEXT_H
#define FOREBAY_MPI_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct text {
  char *bytes; /* zero-terminated once something was added; NULL before */
  size_t length, room;
  bool is_cut;    /* something did not fit into memory */
  bool is_mapped; /* to be set before anything is added: its memory does not come from malloc */
};

void text_add_bytes(struct text *text, const void *bytes, size_t length);
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void text_add_json_string(struct text *text, const char *value);

void text_clear(struct text *text);

/* What was added, "" if nothing. */
const char *text_of(const struct text *text);

#endif
