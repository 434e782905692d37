/* The file or files of all dumps, in one of the ways in which BTIO writes them.
 *
 * Every function of a variant is collective and gives all ranks the same answer
 * (harness/attempt.h). After a failed create or open nothing is open; after any other failure
 * give_up must be called. */
#ifndef BTIO_DUMP_FILE_H
#define BTIO_DUMP_FILE_H

#include "harness/mpi_file.h"
#include "layout.h"

enum { PATH_BYTES_MAX = DIRECTORY_BYTES_MAX + 32 };

struct dump_file;

struct variant {
  const char *name;
  const char *file_name;
  bool file_per_rank;          /* ".0000", the rank, follows the file's name */
  const char *needs, *package; /* what was missing at build time, and Debian's name for it */

  /* A new file, in place of an old one. NULL: this variant was left out of the build. */
  bool (*create)(struct dump_file *file);
  /* An existing file, for reading; one that cannot hold exactly these dumps is refused. */
  bool (*open)(struct dump_file *file);
  bool (*write)(struct dump_file *file, int dump, const double *values);
  bool (*read)(struct dump_file *file, int dump, double *values);
  /* What is read or written next is the first dump again, and writing drops what follows it. NULL
   * where each call says which dump it means. */
  bool (*rewind)(struct dump_file *file);
  bool (*sync)(struct dump_file *file);
  /* After writing, false also if the file is shorter than it must be. */
  bool (*close)(struct dump_file *file);
  /* Closes after a failure, without a further message. */
  void (*give_up)(struct dump_file *file);
};

struct dump_file {
  const struct variant *variant;
  MPI_Comm comm;
  const char *path;
  int dumps; /* that are in it when it is closed, or opened for reading */
  const struct partition *partition;
  const struct layout *layout;
  struct io_times *times;
  int collbuf_nodes, collbuf_bytes; /* hints for full; no nodes: none */
  bool writing;                     /* set by create */
  int64_t calls;                    /* of this rank that moved data */

  /* Each variant uses its own of these. */
  struct mpi_file mpi;
  struct {
    int descriptor;
    unsigned char *record; /* room for the largest record, marks included */
    bool rewound;          /* the next record written is the last one */
    char path[PATH_BYTES_MAX + 16];
  } epio;
  struct {
    int id, variable;
  } netcdf;
  struct {
    int unit;
    bool open;
  } fortran;
};

/* Bytes of all dumps of the whole grid, without any format around them. */
int64_t dump_file_bytes(const struct dump_file *file);

#endif
