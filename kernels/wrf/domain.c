#include "domain.h"

#include "harness/message.h"
#include "harness/share.h"

#include <limits.h>

/* A whole 3-D variable below 2 GiB is what one call and CDF-2, with its sizes of 32 bits, are sure
 * to take. The plane comes first, because the product of three ints may not fit 64 bits. */
static bool check_variable_size(int rank, struct domain *domain) {
  int64_t plane = (int64_t)domain->size[NORTH] * domain->size[EAST];
  int64_t planes_max = INT_MAX / (int64_t)sizeof(float) / plane;
  if (domain->size[LEVELS] > planes_max)
    complain_once(rank, "a 3-D variable is larger than 2 GiB, the limit of one call and of CDF-2\n"
                        "hint: use a smaller grid (--nx, --ny, --nz)");
  else
    domain->points = plane * domain->size[LEVELS];
  return domain->size[LEVELS] <= planes_max;
}

bool domain_make(const struct options *options, MPI_Comm comm, struct domain *domain) {
  int rank, ranks, parts[2] = {0, 0}; /* north, east: as square as can be, more along north */
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  MPI_Dims_create(ranks, 2, parts);
  *domain = (struct domain){.comm = comm, .size = {options->nz, options->ny, options->nx}};
  if (parts[0] > options->ny || parts[1] > options->nx) {
    complain_once(rank,
                  "%d ranks are %d patches from west to east times %d from south to north, more "
                  "than points\nhint: use fewer ranks or a larger grid (--nx, --ny)",
                  ranks, parts[1], parts[0]);
    return false;
  }
  domain->count[LEVELS] = options->nz;
  share_of(options->ny, parts[0], rank / parts[1], &domain->low[NORTH], &domain->count[NORTH]);
  share_of(options->nx, parts[1], rank % parts[1], &domain->low[EAST], &domain->count[EAST]);
  return check_variable_size(rank, domain);
}
