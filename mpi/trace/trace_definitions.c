/* What records refer to by number: strings, infos, groups of ranks, datatypes. */
#include "base/library.h"
#include "base/real_call.h"
#include "settings/info.h"
#include "trace/trace_map.h"
#include "trace/trace_record.h"

#include <stdlib.h>

#define DEFINITION_FUNCTIONS(X)                                                                    \
  X(Comm_group)                                                                                    \
  X(Group_free)                                                                                    \
  X(Group_size)                                                                                    \
  X(Group_translate_ranks)                                                                         \
  X(Type_free)                                                                                     \
  X(Type_get_contents)                                                                             \
  X(Type_get_envelope)                                                                             \
  X(Type_get_name)

static struct {
#define DECLARE(name) __typeof__(&PMPI_##name) name;
  DEFINITION_FUNCTIONS(DECLARE)
#undef DECLARE
#if MPI_VERSION >= 4
  __typeof__(&PMPI_Type_get_envelope_c) Type_get_envelope_c;
#endif
} mpi;

bool trace_definitions_bind(void) {
  bool complete = true;
#define FIND(name)                                                                                 \
  mpi.name = (__typeof__(mpi.name))real_find("PMPI_" #name);                                       \
  complete = complete && mpi.name != NULL;
  DEFINITION_FUNCTIONS(FIND)
#if MPI_VERSION >= 4
  FIND(Type_get_envelope_c)
#endif
#undef FIND
  return complete;
}

static struct trace_map known_contents, known_types;
static int64_t defined[TRACE_DEFINITIONS];

/* A table that is full is emptied: what comes again is written again, under a new number. */
static void remember(struct trace_map *map, uint64_t key, int64_t number) {
  if (!trace_map_set(map, key, number)) {
    trace_map_clear(map);
    trace_map_set(map, key, number);
  }
}

int64_t trace_define(enum trace_definition kind, const uint8_t *content, size_t length) {
  uint64_t hash = trace_hash(TRACE_HASH_SEED + (uint64_t)kind, content, length);
  int64_t number = trace_map_find(&known_contents, hash);
  if (number >= 0)
    return number;
  struct text record = {0};
  uint8_t head[1 + TRACE_VARINT_BYTES_MAX] = {(uint8_t)(TRACE_DEFINE + kind)};
  text_add_bytes(&record, head, 1 + trace_put(head + 1, length));
  text_add_bytes(&record, content, length);
  bool is_kept = !record.is_cut && trace_append((const uint8_t *)text_of(&record), record.length);
  text_clear(&record);
  if (!is_kept)
    return -1;
  remember(&known_contents, hash, defined[kind]);
  return defined[kind]++;
}

static int64_t define(enum trace_definition kind, const struct text *content) {
  if (content->is_cut || !trace_enter())
    return -1;
  int64_t number = trace_define(kind, (const uint8_t *)text_of(content), content->length);
  trace_leave();
  return number;
}

int64_t trace_define_text(const char *text) {
  struct text content = {0};
  text_add_bytes(&content, text, strlen(text));
  int64_t number = define(TRACE_TEXT, &content);
  text_clear(&content);
  return number;
}

int64_t trace_define_info(MPI_Info info) {
  struct text content = {0};
  if (info == library.no_info)
    return -1;
  info_print(info, &content);
  int64_t number = define(TRACE_INFO, &content);
  text_clear(&content);
  return number;
}

static void add(struct text *content, uint64_t value) {
  uint8_t bytes[TRACE_VARINT_BYTES_MAX];
  text_add_bytes(content, bytes, trace_put(bytes, value));
}

/* Neighbours differ little: each number as its distance from the one before. */
static void add_ints(struct text *content, const int *values, int count) {
  int64_t before = 0;
  add(content, (uint64_t)count);
  for (int i = 0; i < count; i++) {
    add(content, trace_fold(values[i] - before));
    before = values[i];
  }
}

static void add_addresses(struct text *content, const MPI_Aint *values, int count) {
  int64_t before = 0;
  add(content, (uint64_t)count);
  for (int i = 0; i < count; i++) {
    add(content, trace_fold((int64_t)((uint64_t)values[i] - (uint64_t)before)));
    before = values[i];
  }
}

/* Runs of neighbouring ranks of MPI_COMM_WORLD: distance from the end of the run before, length. */
static void add_runs(struct text *content, const int *ranks, int count) {
  int end = 0;
  for (int i = 0; i < count;) {
    int length = 1;
    while (i + length < count && ranks[i + length] == ranks[i] + length)
      length++;
    add(content, trace_fold((int64_t)ranks[i] - end));
    add(content, (uint64_t)length);
    end = ranks[i] + length;
    i += length;
  }
}

static bool world_ranks(MPI_Group group, int count, int *ranks, int *world) {
  MPI_Group all;
  for (int i = 0; i < count; i++)
    ranks[i] = i;
  if (mpi.Comm_group(library.world, &all) != MPI_SUCCESS)
    return false;
  int code = mpi.Group_translate_ranks(group, count, ranks, all, world);
  mpi.Group_free(&all);
  for (int i = 0; i < count; i++)
    if (code != MPI_SUCCESS || world[i] < 0) /* MPI_UNDEFINED: of another world */
      return false;
  return true;
}

int64_t trace_define_group(MPI_Comm comm) {
  MPI_Group group;
  int count = 0;
  int64_t number = -1;
  if (mpi.Comm_group(comm, &group) != MPI_SUCCESS)
    return -1;
  mpi.Group_size(group, &count);
  int *ranks = malloc(2 * (size_t)count * sizeof *ranks);
  if (ranks != NULL && world_ranks(group, count, ranks, ranks + count)) {
    struct text content = {0};
    add_runs(&content, ranks + count, count);
    number = define(TRACE_GROUP, &content);
    text_clear(&content);
  }
  free(ranks);
  mpi.Group_free(&group);
  return number;
}

static int code_of(int combiner) {
  static const struct {
    int mpi, trace;
  } codes[] = {
      {MPI_COMBINER_NAMED, TRACE_NAMED},
      {MPI_COMBINER_DUP, TRACE_DUP},
      {MPI_COMBINER_CONTIGUOUS, TRACE_CONTIGUOUS},
      {MPI_COMBINER_VECTOR, TRACE_VECTOR},
      {MPI_COMBINER_HVECTOR, TRACE_HVECTOR},
      {MPI_COMBINER_INDEXED, TRACE_INDEXED},
      {MPI_COMBINER_HINDEXED, TRACE_HINDEXED},
      {MPI_COMBINER_INDEXED_BLOCK, TRACE_INDEXED_BLOCK},
      {MPI_COMBINER_HINDEXED_BLOCK, TRACE_HINDEXED_BLOCK},
      {MPI_COMBINER_STRUCT, TRACE_STRUCT},
      {MPI_COMBINER_SUBARRAY, TRACE_SUBARRAY},
      {MPI_COMBINER_DARRAY, TRACE_DARRAY},
      {MPI_COMBINER_F90_REAL, TRACE_F90_REAL},
      {MPI_COMBINER_F90_COMPLEX, TRACE_F90_COMPLEX},
      {MPI_COMBINER_F90_INTEGER, TRACE_F90_INTEGER},
      {MPI_COMBINER_RESIZED, TRACE_RESIZED},
  };
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
    if (codes[i].mpi == combiner)
      return codes[i].trace;
  return -1;
}

struct contents {
  int combiner; /* enum trace_combiner, or -1 */
  int int_count, address_count, type_count;
  int *ints;
  MPI_Aint *addresses;
  MPI_Datatype *types;
};

/* The constants of the two families differ, those of the format do not. */
static void translate_constants(struct contents *contents) {
  int *ints = contents->ints;
  if (contents->combiner != TRACE_SUBARRAY && contents->combiner != TRACE_DARRAY)
    return;
  int *order = &ints[contents->int_count - 1];
  *order = *order == MPI_ORDER_C ? TRACE_ORDER_C : TRACE_ORDER_FORTRAN;
  if (contents->combiner != TRACE_DARRAY)
    return;
  int dimensions = ints[2], *distributions = ints + 3 + dimensions;
  for (int i = 0; i < dimensions; i++) {
    int *how = &distributions[i], *argument = &distributions[dimensions + i];
    *how = *how == MPI_DISTRIBUTE_BLOCK    ? TRACE_BLOCK
           : *how == MPI_DISTRIBUTE_CYCLIC ? TRACE_CYCLIC
                                           : TRACE_NONE;
    *argument = *argument == MPI_DISTRIBUTE_DFLT_DARG ? TRACE_DEFAULT_ARGUMENT : *argument;
  }
}

static bool has_large_counts(MPI_Datatype type) {
#if MPI_VERSION >= 4
  MPI_Count ints, addresses, large = 0, types;
  int combiner;
  return mpi.Type_get_envelope_c(type, &ints, &addresses, &large, &types, &combiner) !=
             MPI_SUCCESS ||
         large > 0;
#else
  (void)type;
  return false;
#endif
}

static bool is_predefined(int combiner) {
  return combiner == TRACE_NAMED || combiner == TRACE_F90_REAL || combiner == TRACE_F90_COMPLEX ||
         combiner == TRACE_F90_INTEGER;
}

static int combiner_of(MPI_Datatype type, struct contents *contents) {
  int combiner;
  if (has_large_counts(type) ||
      mpi.Type_get_envelope(type, &contents->int_count, &contents->address_count,
                            &contents->type_count, &combiner) != MPI_SUCCESS)
    return -1;
  return code_of(combiner);
}

static bool take_apart(MPI_Datatype type, struct contents *contents) {
  contents->ints = calloc((size_t)contents->int_count + 1, sizeof *contents->ints);
  contents->addresses = calloc((size_t)contents->address_count + 1, sizeof *contents->addresses);
  contents->types = calloc((size_t)contents->type_count + 1, sizeof *contents->types);
  return contents->ints != NULL && contents->addresses != NULL && contents->types != NULL &&
         mpi.Type_get_contents(type, contents->int_count, contents->address_count,
                               contents->type_count, contents->ints, contents->addresses,
                               contents->types) == MPI_SUCCESS;
}

/* The parts are handles of our own, but for those that are predefined. */
static void free_part(MPI_Datatype *part) {
  struct contents contents;
  int combiner = combiner_of(*part, &contents);
  if (!is_predefined(combiner))
    mpi.Type_free(part);
}

static int64_t describe(MPI_Datatype type);

static void add_parts(struct contents *contents, struct text *content, bool *is_whole) {
  int64_t before = 0;
  add(content, (uint64_t)contents->type_count);
  for (int i = 0; i < contents->type_count; i++) {
    int64_t number = describe(contents->types[i]);
    *is_whole = *is_whole && number >= 0;
    add(content, trace_fold(number - before));
    before = number;
    free_part(&contents->types[i]);
  }
}

/* The name and the size identify a predefined type: MPI_REAL may have 4 bytes or 8. */
static void add_name(MPI_Datatype type, struct text *content) {
  char name[MPI_MAX_OBJECT_NAME + 1] = "";
  int length = 0;
  MPI_Count size = 0;
  mpi.Type_get_name(type, name, &length);
  library.Type_size_x(type, &size);
  add(content, (uint64_t)size);
  text_add_bytes(content, name, strlen(name));
}

/* Without the look-up of the handle: no hook sees that a part's handle is freed. */
static int64_t describe(MPI_Datatype type) {
  struct contents contents = {0};
  struct text content = {0};
  contents.combiner = combiner_of(type, &contents);
  bool is_whole = contents.combiner >= 0;
  add(&content, (uint64_t)contents.combiner);
  if (contents.combiner == TRACE_NAMED) {
    add_name(type, &content);
  } else if (is_whole) {
    is_whole = take_apart(type, &contents);
    if (is_whole) {
      translate_constants(&contents);
      add_ints(&content, contents.ints, contents.int_count);
      add_addresses(&content, contents.addresses, contents.address_count);
      add_parts(&contents, &content, &is_whole);
    }
  }
  int64_t number = is_whole ? define(TRACE_TYPE, &content) : -1;
  text_clear(&content);
  free(contents.ints);
  free(contents.addresses);
  free(contents.types);
  return number;
}

int64_t trace_known_type(MPI_Datatype type) {
  return trace_map_find(&known_types, TRACE_KEY(type));
}

int64_t trace_define_type(MPI_Datatype type) {
  if (type == library.no_type || !trace_enter())
    return -1;
  int64_t number = trace_known_type(type);
  trace_leave();
  if (number >= 0)
    return number;
  number = describe(type);
  if (number >= 0 && trace_enter()) {
    remember(&known_types, TRACE_KEY(type), number);
    trace_leave();
  }
  return number;
}

void trace_type_freed(MPI_Datatype type) {
  if (trace_is_on && trace_enter()) {
    trace_map_remove(&known_types, TRACE_KEY(type));
    trace_leave();
  }
}
