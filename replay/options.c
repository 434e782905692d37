#define _GNU_SOURCE
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char usage[] =
    "usage: mpiexec -n RANKS forebay-replay [OPTION...] TRACE_DIRECTORY\n"
    "       forebay-replay --print TRACE_DIRECTORY\n"
    "Repeats the I/O in a trace, without the program that made it.\n"
    "  --directory DIR   put each file below DIR, under its absolute path\n"
    "  --map OLD=NEW     put files below OLD below NEW instead; may be repeated, the first that "
    "fits "
    "counts\n"
    "  --in-place        use the very files of the trace where no other option says where\n"
    "  --overwrite       replace or change files that are there\n"
    "  --think SHARE     wait that share of the time between two calls (0: not at all)\n"
    "  --partial         issue the calls in a trace that is cut off or lacks calls\n"
    "  --print           a line for each call, nothing is issued\n";

static bool complain(bool speaks, const char *what, const char *on) {
  if (speaks)
    fprintf(stderr, "forebay-replay: %s%s\nhint: forebay-replay --help\n", what, on);
  return false;
}

static bool add_map(struct options *options, char *words) {
  char *equals = strchr(words, '=');
  if (equals == NULL || equals == words || options->map_count == MAPS_MAX)
    return false;
  *equals = '\0';
  options->old[options->map_count] = words;
  options->replacement[options->map_count++] = equals + 1;
  return true;
}

static bool parse_share(const char *word, double *share) {
  char *end;
  *share = strtod(word, &end);
  return *word != '\0' && *end == '\0' && *share >= 0 && *share <= 1000;
}

bool options_parse(int count, char **words, bool speaks, struct options *options) {
  static const struct option known[] = {
      {"directory", required_argument, NULL, 'd'},
      {"map", required_argument, NULL, 'm'},
      {"in-place", no_argument, NULL, 'i'},
      {"overwrite", no_argument, NULL, 'o'},
      {"think", required_argument, NULL, 't'},
      {"partial", no_argument, NULL, 'p'},
      {"print", no_argument, NULL, 'P'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  *options = (struct options){0};
  opterr = 0;
  for (int option; (option = getopt_long(count, words, "", known, NULL)) != -1;) {
    if (option == 'd')
      options->directory = optarg;
    else if (option == 'm' && !add_map(options, optarg))
      return complain(speaks, "--map wants OLD=NEW", "");
    else if (option == 't' && !parse_share(optarg, &options->think_share))
      return complain(speaks, "--think wants a number from 0 on, not ", optarg);
    else if (option == '?')
      return complain(speaks, "what is ", words[optind - 1]);
    options->in_place |= option == 'i';
    options->overwrite |= option == 'o';
    options->partial |= option == 'p';
    options->print |= option == 'P';
    if (option == 'h') {
      if (speaks)
        fputs(usage, stdout);
      exit(0);
    }
  }
  if (optind + 1 != count)
    return complain(speaks, "one directory with a trace is wanted", "");
  options->trace = words[optind];
  bool has_place = options->directory != NULL || options->map_count > 0 || options->in_place;
  return options->print || has_place ||
         complain(speaks, "where shall the files be? --directory, --map or --in-place", "");
}

static char *concatenate(const char *first, const char *second) {
  char *text = NULL;
  if (asprintf(&text, "%s%s", first, second) < 0)
    abort();
  return text;
}

/* True if ".." leads out of the directory that the path begins in. */
static bool escapes_directory(const char *path) {
  int depth = 0;
  while (*path != '\0' && depth >= 0) {
    path += strspn(path, "/");
    size_t length = strcspn(path, "/");
    bool is_parent = length == 2 && strncmp(path, "..", 2) == 0;
    bool is_itself = length == 0 || (length == 1 && *path == '.');
    depth += is_parent ? -1 : !is_itself;
    path += length;
  }
  return depth < 0;
}

char *options_target(const struct options *options, const char *path) {
  for (int i = 0; i < options->map_count; i++) {
    size_t length = strlen(options->old[i]);
    while (length > 0 && options->old[i][length - 1] == '/')
      length--;
    if (strncmp(path, options->old[i], length) == 0 &&
        (path[length] == '/' || path[length] == '\0'))
      return escapes_directory(path + length) ? NULL
                                              : concatenate(options->replacement[i], path + length);
  }
  if (options->directory != NULL)
    return escapes_directory(path) ? NULL : concatenate(options->directory, path);
  return options->in_place ? concatenate(path, "") : NULL;
}
