#define _GNU_SOURCE
#include "record/stripe_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>

/* Where the emulated parallel file system keeps a file's layout: "v1 count=4 size=1048576
 * first=-1". */
#define LAYOUT_ATTRIBUTE "user.forebay.pfs.layout"

struct stripe_layout stripe_layout_of(const char *path) {
  char text[128];
  long long count, size;
  if (getenv("FOREBAY_PFS_STATE") == NULL)
    return (struct stripe_layout){0};
  ssize_t length = getxattr(path, LAYOUT_ATTRIBUTE, text, sizeof text - 1);
  text[length > 0 ? length : 0] = '\0';
  if (sscanf(text, "v1 count=%lld size=%lld", &count, &size) != 2 || count <= 0 || size <= 0)
    return (struct stripe_layout){0};
  return (struct stripe_layout){count, size};
}
