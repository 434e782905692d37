#include "types.h"

#include "memory.h"

/* Predefined types by the names that the MPI standard gives them. */
static MPI_Datatype of_name(const char *name, size_t length) {
#define NAMED(type)                                                                                \
  { #type, type }
  const struct {
    const char *name;
    MPI_Datatype type;
  } known[] = {
      NAMED(MPI_CHAR),
      NAMED(MPI_SIGNED_CHAR),
      NAMED(MPI_UNSIGNED_CHAR),
      NAMED(MPI_BYTE),
      NAMED(MPI_PACKED),
      NAMED(MPI_WCHAR),
      NAMED(MPI_SHORT),
      NAMED(MPI_UNSIGNED_SHORT),
      NAMED(MPI_INT),
      NAMED(MPI_UNSIGNED),
      NAMED(MPI_LONG),
      NAMED(MPI_UNSIGNED_LONG),
      NAMED(MPI_LONG_LONG_INT),
      NAMED(MPI_LONG_LONG),
      NAMED(MPI_UNSIGNED_LONG_LONG),
      NAMED(MPI_FLOAT),
      NAMED(MPI_DOUBLE),
      NAMED(MPI_LONG_DOUBLE),
      NAMED(MPI_INT8_T),
      NAMED(MPI_INT16_T),
      NAMED(MPI_INT32_T),
      NAMED(MPI_INT64_T),
      NAMED(MPI_UINT8_T),
      NAMED(MPI_UINT16_T),
      NAMED(MPI_UINT32_T),
      NAMED(MPI_UINT64_T),
      NAMED(MPI_C_BOOL),
      NAMED(MPI_C_FLOAT_COMPLEX),
      NAMED(MPI_C_DOUBLE_COMPLEX),
      NAMED(MPI_C_LONG_DOUBLE_COMPLEX),
      NAMED(MPI_AINT),
      NAMED(MPI_OFFSET),
      NAMED(MPI_COUNT),
      NAMED(MPI_FLOAT_INT),
      NAMED(MPI_DOUBLE_INT),
      NAMED(MPI_LONG_INT),
      NAMED(MPI_2INT),
      NAMED(MPI_SHORT_INT),
      NAMED(MPI_LONG_DOUBLE_INT),
      NAMED(MPI_CHARACTER),
      NAMED(MPI_LOGICAL),
      NAMED(MPI_INTEGER),
      NAMED(MPI_REAL),
      NAMED(MPI_DOUBLE_PRECISION),
      NAMED(MPI_COMPLEX),
      NAMED(MPI_DOUBLE_COMPLEX),
      NAMED(MPI_INTEGER1),
      NAMED(MPI_INTEGER2),
      NAMED(MPI_INTEGER4),
      NAMED(MPI_INTEGER8),
      NAMED(MPI_REAL4),
      NAMED(MPI_REAL8),
      NAMED(MPI_2INTEGER),
      NAMED(MPI_2REAL),
      NAMED(MPI_2DOUBLE_PRECISION),
  };
#undef NAMED
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strlen(known[i].name) == length && memcmp(known[i].name, name, length) == 0)
      return known[i].type;
  return MPI_DATATYPE_NULL;
}

/* A type that this MPI lacks, or has in another size, is so many bytes: what is moved counts. */
static bool build_named(struct fields *fields, struct built_type *built) {
  int64_t size = (int64_t)fields_take(fields);
  MPI_Count own = -1;
  built->type = of_name((const char *)fields->at, (size_t)(fields->end - fields->at));
  if (built->type != MPI_DATATYPE_NULL)
    MPI_Type_size_x(built->type, &own);
  built->is_predefined = own == size;
  return built->is_predefined ||
         MPI_Type_contiguous((int)size, MPI_BYTE, &built->type) == MPI_SUCCESS;
}

struct contents {
  int int_count, address_count, type_count;
  int *ints;
  MPI_Aint *addresses;
  MPI_Datatype *types;
};

static bool take_count(struct fields *fields, int *count) {
  uint64_t value = fields_take(fields);
  *count = (int)value;
  return !fields->is_bad &&
         value <= (uint64_t)(fields->end - fields->at); /* a byte each at least */
}

/* Parts are defined before what they are parts of. */
static bool take_contents(struct types *types, int64_t number, struct fields *fields,
                          struct contents *contents) {
  int64_t before = 0;
  if (!take_count(fields, &contents->int_count))
    return false;
  contents->ints = memory_zeroed((size_t)contents->int_count, sizeof *contents->ints);
  for (int i = 0; i < contents->int_count; i++)
    contents->ints[i] = (int)(before += fields_take_signed(fields));
  if (!take_count(fields, &contents->address_count))
    return false;
  contents->addresses = memory_zeroed((size_t)contents->address_count, sizeof *contents->addresses);
  before = 0;
  for (int i = 0; i < contents->address_count; i++) {
    before = (int64_t)((uint64_t)before + (uint64_t)fields_take_signed(fields));
    contents->addresses[i] = (MPI_Aint)before;
  }
  if (!take_count(fields, &contents->type_count))
    return false;
  contents->types = memory_zeroed((size_t)contents->type_count, sizeof *contents->types);
  before = 0;
  for (int i = 0; i < contents->type_count; i++) {
    before += fields_take_signed(fields);
    const struct built_type *part = before < number ? types_get(types, before) : NULL;
    if (part == NULL)
      return false;
    contents->types[i] = part->type;
  }
  return !fields->is_bad;
}

static int order_of(int code) { return code == TRACE_ORDER_C ? MPI_ORDER_C : MPI_ORDER_FORTRAN; }

static int build_darray(int *ints, MPI_Datatype of, MPI_Datatype *type) {
  int n = ints[2], *sizes = ints + 3, *how = sizes + n, *arguments = how + n, *grid = arguments + n;
  for (int i = 0; i < n; i++) {
    how[i] = how[i] == TRACE_BLOCK    ? MPI_DISTRIBUTE_BLOCK
             : how[i] == TRACE_CYCLIC ? MPI_DISTRIBUTE_CYCLIC
                                      : MPI_DISTRIBUTE_NONE;
    arguments[i] = arguments[i] == TRACE_DEFAULT_ARGUMENT ? MPI_DISTRIBUTE_DFLT_DARG : arguments[i];
  }
  return MPI_Type_create_darray(ints[0], ints[1], n, sizes, how, arguments, grid, order_of(grid[n]),
                                of, type);
}

/* The integers, addresses and types that MPI_Type_get_contents gives for a combiner, with the first
 * integer as the count where there is one. */
static bool has_contents_of(int combiner, const struct contents *contents) {
  int64_t n = contents->int_count > 0 ? contents->ints[0] : 0, dimensions = 0;
  if (combiner == TRACE_DARRAY && contents->int_count > 2)
    dimensions = contents->ints[2];
  const struct {
    int64_t ints, addresses, types;
  } wanted[TRACE_COMBINERS] = {
      [TRACE_DUP] = {0, 0, 1},
      [TRACE_CONTIGUOUS] = {1, 0, 1},
      [TRACE_VECTOR] = {3, 0, 1},
      [TRACE_HVECTOR] = {2, 1, 1},
      [TRACE_INDEXED] = {1 + 2 * n, 0, 1},
      [TRACE_HINDEXED] = {1 + n, n, 1},
      [TRACE_INDEXED_BLOCK] = {2 + n, 0, 1},
      [TRACE_HINDEXED_BLOCK] = {2, n, 1},
      [TRACE_STRUCT] = {1 + n, n, n},
      [TRACE_SUBARRAY] = {2 + 3 * n, 0, 1},
      [TRACE_DARRAY] = {4 + 4 * dimensions, 0, 1},
      [TRACE_F90_REAL] = {2, 0, 0},
      [TRACE_F90_COMPLEX] = {2, 0, 0},
      [TRACE_F90_INTEGER] = {1, 0, 0},
      [TRACE_RESIZED] = {0, 2, 1},
  };
  return n >= 0 && dimensions >= 0 && combiner >= 0 && combiner < TRACE_COMBINERS &&
         contents->int_count == wanted[combiner].ints &&
         contents->address_count == wanted[combiner].addresses &&
         contents->type_count == wanted[combiner].types;
}

static int build_derived(int combiner, struct contents *contents, MPI_Datatype *type) {
  int *ints = contents->ints, n = contents->int_count > 0 ? ints[0] : 0;
  MPI_Aint *addresses = contents->addresses;
  MPI_Datatype of = contents->type_count > 0 ? contents->types[0] : MPI_DATATYPE_NULL;
  switch (combiner) {
  case TRACE_DUP:
    return MPI_Type_dup(of, type);
  case TRACE_CONTIGUOUS:
    return MPI_Type_contiguous(n, of, type);
  case TRACE_VECTOR:
    return MPI_Type_vector(n, ints[1], ints[2], of, type);
  case TRACE_HVECTOR:
    return MPI_Type_create_hvector(n, ints[1], addresses[0], of, type);
  case TRACE_INDEXED:
    return MPI_Type_indexed(n, ints + 1, ints + 1 + n, of, type);
  case TRACE_HINDEXED:
    return MPI_Type_create_hindexed(n, ints + 1, addresses, of, type);
  case TRACE_INDEXED_BLOCK:
    return MPI_Type_create_indexed_block(n, ints[1], ints + 2, of, type);
  case TRACE_HINDEXED_BLOCK:
    return MPI_Type_create_hindexed_block(n, ints[1], addresses, of, type);
  case TRACE_STRUCT:
    return MPI_Type_create_struct(n, ints + 1, addresses, contents->types, type);
  case TRACE_SUBARRAY:
    return MPI_Type_create_subarray(n, ints + 1, ints + 1 + n, ints + 1 + 2 * n,
                                    order_of(ints[1 + 3 * n]), of, type);
  case TRACE_DARRAY:
    return build_darray(ints, of, type);
  case TRACE_F90_REAL:
    return MPI_Type_create_f90_real(n, ints[1], type);
  case TRACE_F90_COMPLEX:
    return MPI_Type_create_f90_complex(n, ints[1], type);
  case TRACE_F90_INTEGER:
    return MPI_Type_create_f90_integer(n, type);
  case TRACE_RESIZED:
    return MPI_Type_create_resized(of, addresses[0], addresses[1], type);
  default:
    return MPI_ERR_TYPE;
  }
}

static bool build(struct types *types, int64_t number, struct built_type *built) {
  struct piece piece;
  struct contents contents = {0};
  if (!reader_definition(types->reader, TRACE_TYPE, number, &piece))
    return false;
  struct fields fields = fields_of(piece);
  int combiner = (int)fields_take(&fields);
  if (combiner == TRACE_NAMED)
    return build_named(&fields, built);
  bool is_good = take_contents(types, number, &fields, &contents) &&
                 has_contents_of(combiner, &contents) &&
                 build_derived(combiner, &contents, &built->type) == MPI_SUCCESS;
  built->is_predefined = combiner >= TRACE_F90_REAL && combiner <= TRACE_F90_INTEGER;
  free(contents.ints);
  free(contents.addresses);
  free(contents.types);
  return is_good;
}

const struct built_type *types_get(struct types *types, int64_t number) {
  if (number < 0 || (size_t)number >= types->reader->definitions[TRACE_TYPE].count)
    return NULL;
  types->items = memory_grown(types->items, &types->room, (size_t)number + 1, sizeof *types->items);
  if (types->items[number].is_built)
    return &types->items[number];
  struct built_type built = {0};
  MPI_Count lower;
  if (!build(types, number, &built)) /* its parts may have moved the items */
    return NULL;
  if (!built.is_predefined && MPI_Type_commit(&built.type) != MPI_SUCCESS)
    return NULL;
  MPI_Type_get_extent_x(built.type, &lower, &built.extent);
  MPI_Type_get_true_extent_x(built.type, &built.true_lower, &built.true_extent);
  built.is_built = true;
  types->items[number] = built;
  return &types->items[number];
}

void types_free(struct types *types) {
  for (size_t i = 0; i < types->room; i++)
    if (types->items[i].is_built && !types->items[i].is_predefined)
      MPI_Type_free(&types->items[i].type);
  free(types->items);
}
