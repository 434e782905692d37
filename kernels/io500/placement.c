#include "placement.h"

#include "options.h"

#include "harness/attempt.h"
#include "harness/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOST_BYTES_MAX = 256 };

static const struct attempt finding = {
    "open",
    "\nhint: the directory must be the same on all nodes, such as one of a shared file system"};

static char (*hosts)[HOST_BYTES_MAX]; /* of each rank, on rank 0 */
static int rank_count, shift;

static int ranks_that_read_elsewhere(int distance) {
  int count = 0;
  for (int rank = 0; rank < rank_count; rank++)
    count += strcmp(hosts[rank], hosts[(rank + distance) % rank_count]) != 0;
  return count;
}

/* The smallest distance with the most ranks that read from another node. */
static int best_shift(void) {
  int best = 1 % rank_count, most = ranks_that_read_elsewhere(best);
  for (int distance = 2; distance < rank_count && most < rank_count; distance++) {
    int count = ranks_that_read_elsewhere(distance);
    if (count <= most)
      continue;
    best = distance;
    most = count;
  }
  return best;
}

static const char *directory_fault(const struct options *options) {
  static char fault[HOST_BYTES_MAX + 96];
  char host[HOST_BYTES_MAX] = "?";
  int descriptor = open(options->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    close(descriptor);
    return NULL;
  }
  const char *why = strerror(errno);
  gethostname(host, sizeof host - 1);
  snprintf(fault, sizeof fault, "on node %s: %s", host, why);
  return fault;
}

bool placement_print(struct benchmark *benchmark) {
  char host[HOST_BYTES_MAX] = "";
  gethostname(host, sizeof host - 1);
  rank_count = benchmark->ranks;
  if (!attempt_agreed(benchmark->comm, benchmark->options->directory, &finding,
                      directory_fault(benchmark->options)))
    return false;
  if (benchmark->rank == 0)
    hosts = calloc((size_t)rank_count, sizeof *hosts);
  if (!attempt_memory(benchmark->comm, benchmark->rank != 0 || hosts != NULL, "the names of nodes",
                      "run on fewer ranks"))
    return false;
  MPI_Gather(host, HOST_BYTES_MAX, MPI_CHAR, hosts, HOST_BYTES_MAX, MPI_CHAR, 0, benchmark->comm);
  if (benchmark->rank == 0)
    shift = best_shift();
  return true;
}

void placement_print_fields(void) {
  const char *separator = "";
  printf(",\"shift\":%d,\"nodes\":[", shift);
  for (int rank = 0; rank < rank_count; rank++) {
    bool seen = false;
    for (int other = 0; other < rank && !seen; other++)
      seen = strcmp(hosts[other], hosts[rank]) == 0;
    if (seen)
      continue;
    printf("%s", separator);
    json_print_string(stdout, hosts[rank]);
    separator = ",";
  }
  printf("]");
  free(hosts);
}
