/* What the variants on MPI-IO have in common: one shared file that holds the dumps and nothing
 * else. */
#ifndef BTIO_MPI_VARIANT_H
#define BTIO_MPI_VARIANT_H

#include "dump_file.h"

bool mpi_variant_create(struct dump_file *file, MPI_Datatype element, MPI_Datatype view,
                        MPI_Info info);
bool mpi_variant_open(struct dump_file *file, MPI_Datatype element, MPI_Datatype view);
bool mpi_variant_sync(struct dump_file *file);
bool mpi_variant_close(struct dump_file *file);
void mpi_variant_give_up(struct dump_file *file);

#endif
