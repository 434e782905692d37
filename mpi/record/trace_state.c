#include "record/trace_state.h"

bool trace_is_on;
int64_t trace_calls_ended;
