/* The module of WebAssembly, which src/pytensor_onnx/web/static/tape.js calls. */
#ifdef __wasm__
#include "wasm.h"

#include <stdlib.h>

#include "plan.h"
#include "runner.h"

#define EXPORTED(name) __attribute__((export_name(#name)))

static const char *last_problem;

void stop(const char *problem) {
  last_problem = problem;
  __builtin_trap();
}

/* Return why the module has stopped; NULL if it has not, or by a fault. */
EXPORTED(problem) const char *get_problem(void) { return last_problem; }

EXPORTED(allocate) void *allocate(size_t bytes) { return malloc(bytes + 1); }
EXPORTED(release) void release(void *memory) { free(memory); }

/* Return the name of an operator, NULL at the end. */
EXPORTED(operator) const char *name_of_operator(int i) {
  return i >= 0 && i < OPERATOR_COUNT ? OPERATORS[i].name : NULL;
}

EXPORTED(open) Runner *open_tape(const char *tape, size_t bytes) {
  return make_runner(tape, bytes);
}

EXPORTED(hold) void hold(Runner *runner, int input) { set_constant(runner, input); }

static const char *allocate_result(void *results, int i, const Array *result, void **data) {
  Array *made = (Array *)results + i;
  *made = *result;
  made->data = *data = allocate((size_t)result->size * bytes_of_element(result->dtype));
  return *data ? NULL : "out of memory";
}

/* Run a tape; a problem, or NULL and results, whose data the caller releases. */
EXPORTED(run) const char *run_once(Runner *runner, const Array *inputs, Array *results) {
  void **outputs = allocate((size_t)runner_block(runner)->outputs * sizeof *outputs);
  if (!outputs) return "out of memory";
  const char *problem = run_tape(runner, inputs, allocate_result, results, outputs);
  free(outputs);
  return problem;
}
#else
typedef int NotOfWebAssembly; /* A file of C has at least one declaration. */
#endif
