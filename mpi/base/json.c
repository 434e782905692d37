#include "base/json.h"

#include <math.h>

void separate(struct text *out) {
  char last = out->length > 0 ? out->bytes[out->length - 1] : '{';
  if (last != '{' && last != '[')
    text_add_bytes(out, ",", 1);
}

void add_name(struct text *out, const char *name) {
  separate(out);
  text_add(out, "\"%s\":", name);
}

void add_integer(struct text *out, const char *name, int64_t value) {
  add_name(out, name);
  text_add(out, "%lld", (long long)value);
}

void add_known(struct text *out, const char *name, bool is_known, int64_t value) {
  if (is_known)
    add_integer(out, name, value);
  else
    add_string(out, name, NULL);
}

void add_seconds(struct text *out, const char *name, double value) {
  if (isnan(value)) {
    add_string(out, name, NULL);
    return;
  }
  long long micros = (long long)(value * 1e6 + (value < 0 ? -0.5 : 0.5));
  const char *sign = micros < 0 ? "-" : "";
  if (micros < 0)
    micros = -micros;
  add_name(out, name);
  text_add(out, "%s%lld.%06lld", sign, micros / 1000000, micros % 1000000);
}

void open_object(struct text *out, const char *name) {
  if (name != NULL)
    add_name(out, name);
  else
    separate(out);
  text_add(out, "{");
}

void add_string(struct text *out, const char *name, const char *value) {
  add_name(out, name);
  if (value != NULL)
    text_add_json_string(out, value);
  else
    text_add(out, "null");
}
