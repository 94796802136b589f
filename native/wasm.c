/* The module of WebAssembly, which src/pytensor_onnx/web/static/tape.js calls. */
#ifdef __wasm__
#include <stdlib.h>

#include "operators.h"
#include "runner.h"

#define EXPORTED(name) __attribute__((export_name(#name)))

EXPORTED(allocate) void *allocate(size_t bytes) { return malloc(bytes + 1); }
EXPORTED(release) void release(void *memory) { free(memory); }

/* Return the name of an operator, NULL at the end. */
EXPORTED(operator) const char *name_of_operator(int i) {
  return i >= 0 && i < OPERATORS.count ? OPERATORS.all[i].name : NULL;
}

/* Whether the module has rare kernels, which the core lacks. */
EXPORTED(whole) int is_whole(void) {
#ifdef IS_CORE
  return 0;
#else
  return 1;
#endif
}

EXPORTED(open) Runner *open_tape(const char *tape, size_t bytes) {
  return make_runner(&OPERATORS, tape, bytes);
}

EXPORTED(inputs) int inputs_of(const Runner *runner) { return runner_block(runner)->inputs; }
EXPORTED(outputs) int outputs_of(const Runner *runner) { return runner_block(runner)->outputs; }

EXPORTED(hold) void hold(Runner *runner, int input) { set_constant(runner, input); }

static const char *allocate_result(void *results, int i, const Array *result, void **data) {
  Array *made = (Array *)results + i;
  *made = *result;
  made->data = *data = allocate((size_t)result->size * bytes_of_element(result->dtype));
  return *data ? NULL : "out of memory";
}

/* The present run. */
static struct {
  Plan *plan, **place;
  void **outputs;
} run;

/* Begin a run; a problem, or NULL and results, whose data the caller releases. */
EXPORTED(begin) const char *begin(Runner *runner, const Array *inputs, Array *results) {
  int outputs = runner_block(runner)->outputs;
  const char *problem = "out of memory";
  run.outputs = allocate((size_t)outputs * sizeof *run.outputs);
  if (!run.outputs) return problem;
  run.plan = take_plan(runner, inputs, &run.place, &problem);
  if (!run.plan) return problem;
  problem = NULL;
  for (int i = 0; !problem && i < outputs; i++) {
    problem = allocate_result(results, i, plan_output(run.plan, i), &run.outputs[i]);
  }
  return problem ? problem : begin_plan(run.plan, inputs, run.outputs);
}

/* Go on by a number of steps and iterations; a problem, or NULL. */
EXPORTED(advance) const char *advance(int count) {
  const char *problem = NULL;
  for (int i = 0; !problem && i < count && has_more(run.plan); i++) problem = go_on(run.plan);
  return problem;
}

EXPORTED(more) int more(void) { return has_more(run.plan); }
EXPORTED(done) double iterations_done(void) { return (double)progress_of(run.plan).done; }
EXPORTED(total) double iterations_of_all(void) { return (double)progress_of(run.plan).total; }
/* Write the outputs as far as they are known. */
EXPORTED(peek) const char *peek_outputs(void) { return peek(run.plan); }

/* End a run, also one that could not begin. */
EXPORTED(end) void end(void) {
  if (run.plan) {
    end_plan(run.plan);
    put_plan(run.place, run.plan);
  }
  free(run.outputs);
  run.plan = NULL;
  run.outputs = NULL;
}
#else
typedef int NotOfWebAssembly; /* A file of C has at least one declaration. */
#endif
