/* Models as C functions, which samplers call without Python. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "custom_op.h"
#include "elementwise.h"
#include "functions.h"
#include "operators.h"
#include "runner.h"

enum { QUIET = 4, DEVICE = 0, DEFAULT_MEMORY = 0, POINT = 0 };
enum { OTHER_SIZE = -1, FAILED = 1, GRADIENT_NOT_FINITE = 3, DENSITY_NOT_FINITE = 4 };

/* Calls only read it but for `plain`, which is opened once. */
typedef struct {
  Settings settings;
  const Runtime *runtime;
  Runner *runner; /* of the tape, NULL without one */
  Session *session;
  _Atomic(Session *) plain;
  atomic_flag is_opening;
  MemoryInfo *memory;
  Value **given; /* the inputs, without the point */
} ModelFunction;

/* Return the one environment of all sessions, which lives as long as the process. */
static Status *environment(const Runtime *runtime, Env **env) {
  static Env *made;
  static atomic_flag is_busy = ATOMIC_FLAG_INIT;
  while (atomic_flag_test_and_set(&is_busy)) {
  }
  Status *status = made ? NULL : create_env(runtime, QUIET, "pytensor_onnx", &made);
  *env = made;
  atomic_flag_clear(&is_busy);
  return status;
}

static Status *open_session(const Settings *settings, const Runtime *runtime, const void *model,
                            size_t bytes, Session **session) {
  Env *env = NULL;
  SessionOptions *options = NULL;
  Status *status = environment(runtime, &env);
  if (!status) status = create_options(runtime, &options);
  if (!status) status = set_severity(runtime, options, QUIET);
  if (!status) status = set_threads(runtime, options, (int)settings->threads);
  for (int64_t i = 0; !status && i < settings->entry_count; i++) {
    status = add_entry(runtime, options, settings->entries[2 * i], settings->entries[2 * i + 1]);
  }
  if (!status) status = RegisterCustomOps(options, known_base);
  if (!status) status = create_session(runtime, env, model, bytes, options, session);
  if (options) release_options(runtime, options);
  return status;
}

EXPORT void pytensor_onnx_close(void *opened) {
  ModelFunction *function = opened;
  if (!function) return;
  const Runtime *runtime = function->runtime;
  for (int64_t i = 0; function->given && i < function->settings.input_count; i++) {
    if (function->given[i]) release_value(runtime, function->given[i]);
  }
  free_runner(function->runner);
  if (function->session) release_session(runtime, function->session);
  if (function->plain) release_session(runtime, function->plain);
  if (function->memory) release_memory(runtime, function->memory);
  free(function->given);
  free(function);
}

/* Whether there is a tape that takes the operands and gives the outputs. */
static int fits(const ModelFunction *function) {
  const Settings *settings = &function->settings;
  const Block *block = function->runner ? runner_block(function->runner) : NULL;
  return block && block->inputs == settings->operand_count &&
         block->outputs == settings->output_count;
}

EXPORT void *pytensor_onnx_open(const Settings *settings, const Array *data) {
  const Runtime *runtime = known_base ? known_base->get_api(RUNTIME_API_VERSION) : NULL;
  ModelFunction *function = runtime || settings->tape ? calloc(1, sizeof *function) : NULL;
  if (!function) return NULL;
  function->settings = *settings;
  function->runtime = runtime;
  function->given = calloc((size_t)settings->input_count + 1, sizeof *function->given);
  Status *status =
      runtime ? cpu_memory(runtime, DEVICE, DEFAULT_MEMORY, &function->memory) : NULL;
  for (int64_t i = 1; !status && function->given && i < settings->input_count; i++) {
    const Array *array = &data[i];
    size_t bytes = (size_t)array->size * bytes_of_element(array->dtype);
    status = wrap_tensor(runtime, function->memory, array->data, bytes, array->shape,
                         (size_t)array->rank, array->dtype, &function->given[i]);
  }
  if (!status && settings->tape) {
    function->runner = make_runner_with(&OPERATORS, settings->tape, settings->tape_bytes,
                                        settings->operands);
  } else if (!status && settings->model) {
    status = open_session(settings, runtime, settings->model, settings->bytes, &function->session);
  }
  int is_opened = !status && function->given && (!settings->tape || fits(function));
  if (is_opened) return function;
  if (status) release_status(runtime, status);
  pytensor_onnx_close(function);
  return NULL;
}

/* Return the session without regions, NULL where there is none. */
static Session *plain_session(ModelFunction *function) {
  const Settings *settings = &function->settings;
  if (!settings->plain) return NULL;
  while (atomic_flag_test_and_set(&function->is_opening)) {
  }
  if (!function->plain) {
    Session *opened = NULL;
    Status *status = open_session(settings, function->runtime, settings->plain,
                                  settings->plain_bytes, &opened);
    if (status) release_status(function->runtime, status);
    function->plain = opened;
  }
  atomic_flag_clear(&function->is_opening);
  return function->plain;
}

/* A result of a model, in memory of its own or in a value of the runtime. */
typedef struct {
  Array array;
  void *memory;
  Value *value;
} Result;

static Status *read_result(const Runtime *runtime, Result *result) {
  Array *array = &result->array;
  size_t rank = 0;
  const int64_t *shape = NULL;
  Status *status = tensor_shape(runtime, result->value, &array->dtype, &shape, &rank);
  if (!status) status = tensor_data(runtime, result->value, &array->data);
  array->size = 1;
  for (size_t axis = 0; !status && axis < rank; axis++) array->size *= shape[axis];
  return status;
}

static int run_by_session(ModelFunction *function, Session *session, void *point,
                          Result *results) {
  const Settings *settings = &function->settings;
  const Runtime *runtime = function->runtime;
  const Value *inputs[settings->input_count + 1];
  Value *outputs[settings->output_count + 1], *value = NULL;
  memset(outputs, 0, sizeof outputs);
  for (int64_t i = 1; i < settings->input_count; i++) inputs[i] = function->given[i];
  size_t bytes = (size_t)settings->size * bytes_of_element(settings->dtype);
  Status *status = wrap_tensor(runtime, function->memory, point, bytes, &settings->size, 1,
                               settings->dtype, &value);
  inputs[POINT] = value;
  if (!status) {
    status = run_session(runtime, session, NULL, settings->inputs, inputs,
                         (size_t)settings->input_count, settings->outputs,
                         (size_t)settings->output_count, outputs);
  }
  for (int64_t i = 0; i < settings->output_count; i++) {
    results[i].value = outputs[i];
    if (!status) status = read_result(runtime, &results[i]);
  }
  if (value) release_value(runtime, value);
  if (status) release_status(runtime, status);
  return !status;
}

/* Where the results of a tape go. */
typedef struct {
  const int64_t *places;
  Result *results;
  double *const *out;
  const int64_t *room;
} Results;

/* Have a result written where the caller wants it, if it has the type and the size for it. */
static const char *allocate(void *given, int i, const Array *array, void **data) {
  const Results *to = given;
  int64_t place = to->places[i];
  Result *result = &to->results[place];
  result->array = *array;
  if (to->out[place] && array->dtype == FLOAT64 && array->size == to->room[place]) {
    result->array.data = *data = to->out[place];
    return NULL;
  }
  result->memory = malloc((size_t)array->size * bytes_of_element(array->dtype) + 1);
  result->array.data = *data = result->memory;
  return *data ? NULL : "out of memory";
}

static int run_by_tape(ModelFunction *function, void *point, Result *results, double *const *out,
                       const int64_t *room) {
  const Settings *settings = &function->settings;
  const Block *block = runner_block(function->runner);
  Array inputs[block->inputs + 1];
  void *outputs[block->outputs + 1];
  for (int i = 0; i < block->inputs; i++) {
    inputs[i] = settings->operands[i];
    if (!inputs[i].data) inputs[i].data = point;
  }
  Results to = {settings->places, results, out, room};
  return !run_tape(function->runner, inputs, allocate, &to, outputs);
}

static void release(const ModelFunction *function, Result *results) {
  int64_t count = function->settings.output_count;
  for (int64_t i = 0; i < count; i++) {
    free(results[i].memory);
    if (results[i].value) release_value(function->runtime, results[i].value);
  }
  memset(results, 0, (size_t)count * sizeof *results);
}

/* Write the elements of an array as float64; return whether there is room, and a cast. */
static int write_array(const Array *array, double *out, int64_t room) {
  if (array->size > room) return 0;
  const ElementKernel *cast = element_kernel(ELEMENTWISE_CastToFloat64, array->dtype);
  if (array->dtype == FLOAT64) {
    if (array->size && array->data != out) {
      memcpy(out, array->data, (size_t)array->size * sizeof *out);
    }
  } else if (cast && cast->vectors) {
    cast->vectors(&(Element){.at = {(char *)out, array->data}}, 0, array->size);
  } else {
    return 0;
  }
  return 1;
}

/* Write results, each to its place in `out`, or after the one before it where that is NULL; return
 * whether all elements are written, and no others. */
static int write_results(const Result *results, int64_t count, double *const *out,
                         const int64_t *room) {
  double *next = NULL;
  int64_t left = 0;
  for (int64_t i = 0; i < count; i++) {
    if (out[i]) {
      if (left) return 0;
      next = out[i];
      left = room[i];
    }
    if (!write_array(&results[i].array, next, left)) return 0;
    next += results[i].array.size;
    left -= results[i].array.size;
  }
  return !left;
}

/* Write the results of a model at a point as `write_results` does. */
static int evaluate(ModelFunction *function, const double *point, double *const *out,
                    const int64_t *room) {
  const Settings *settings = &function->settings;
  float *converted = NULL;
  void *data = (void *)point;
  Result results[settings->output_count + 1];
  memset(results, 0, sizeof results);
  if (settings->dtype == FLOAT32) {
    data = converted = malloc((size_t)settings->size * sizeof *converted + 1);
    if (!converted) return 0;
    for (int64_t i = 0; i < settings->size; i++) converted[i] = (float)point[i];
  }
  int is_done = function->runner ? run_by_tape(function, data, results, out, room)
                                 : run_by_session(function, function->session, data, results);
  if (!is_done) {
    release(function, results);
    Session *plain = plain_session(function);
    is_done = plain && run_by_session(function, plain, data, results);
  }
  is_done = is_done && write_results(results, settings->output_count, out, room);
  release(function, results);
  free(converted);
  return is_done;
}

EXPORT int64_t pytensor_onnx_log_density(uint64_t size, const double *point, double *gradient,
                                         double *density, void *data) {
  ModelFunction *function = ((ModelFunction **)data)[0];
  if (size != (uint64_t)function->settings.size) return OTHER_SIZE;
  double *out[] = {density, gradient};
  const int64_t room[] = {1, (int64_t)size};
  if (!evaluate(function, point, out, room)) return FAILED;
  for (uint64_t i = 0; i < size; i++) {
    if (!isfinite(gradient[i])) return GRADIENT_NOT_FINITE;
  }
  return isfinite(*density) ? 0 : DENSITY_NOT_FINITE;
}

int64_t write_outputs(void *opened, const double *point, double *out, int64_t size) {
  ModelFunction *function = opened;
  int64_t outputs = function->settings.output_count;
  if (!outputs) return size ? OTHER_SIZE : 0;
  double *starts[outputs];
  int64_t room[outputs];
  memset(starts, 0, sizeof starts);
  starts[0] = out;
  room[0] = size;
  return evaluate(function, point, starts, room) ? 0 : FAILED;
}

EXPORT int64_t pytensor_onnx_expand(uint64_t size, uint64_t expanded, const double *point,
                                    double *out, void *data) {
  ModelFunction *function = ((ModelFunction **)data)[1];
  if (size != (uint64_t)function->settings.size || expanded < size) return OTHER_SIZE;
  if (size) memcpy(out, point, size * sizeof *out);
  return write_outputs(function, point, out + size, (int64_t)(expanded - size));
}
