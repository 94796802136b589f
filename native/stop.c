/* The end of a module of WebAssembly, which has no long jumps. */
#ifdef __wasm__
#include "stop.h"

#include <stddef.h>

static const char *last_problem;

void stop(const char *problem) {
  last_problem = problem;
  __builtin_trap();
}

/* Return why the module has stopped; NULL if it has not, or by a fault. */
__attribute__((export_name("problem"))) const char *get_problem(void) { return last_problem; }
#else
typedef int NotOfWebAssembly; /* A file of C has at least one declaration. */
#endif
