/* JSON strings. */
#ifndef HARNESS_JSON_H
#define HARNESS_JSON_H

#include <stdio.h>

/* Prints text with its quotes. Paths are bytes: what is no UTF-8 becomes U+FFFD, so that the line
 * stays JSON. */
void json_print_string(FILE *out, const char *text);

#endif
