/* Models as C functions, which samplers call without Python. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "custom_op.h"
#include "elementwise.h"

enum { QUIET = 4, DEVICE = 0, DEFAULT_MEMORY = 0, POINT = 0 };
enum { OTHER_SIZE = -1, FAILED = 1, GRADIENT_NOT_FINITE = 3, DENSITY_NOT_FINITE = 4 };

/* How a session is made. Python keeps what the pointers name. */
typedef struct {
  const void *model, *plain; /* with regions, and without, which runs where a region refuses */
  uint64_t bytes, plain_bytes;
  const char *const *entries; /* keys and values of the configuration */
  int64_t entry_count, threads;
  const char *const *inputs, *const *outputs; /* names, the point first */
  int64_t input_count, output_count;
  int64_t size; /* of the point */
  int32_t dtype;
} Settings;

/* Calls only read it but for `plain`, which is opened once. */
typedef struct {
  Settings settings;
  const Runtime *runtime;
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
  if (function->session) release_session(runtime, function->session);
  if (function->plain) release_session(runtime, function->plain);
  if (function->memory) release_memory(runtime, function->memory);
  free(function->given);
  free(function);
}

/* Make a function of a model; NULL where the runtime refuses it. The inputs but the point are
 * `data`, which Python keeps. */
EXPORT void *pytensor_onnx_open(const Settings *settings, const Array *data) {
  const Runtime *runtime = known_base ? known_base->get_api(RUNTIME_API_VERSION) : NULL;
  ModelFunction *function = runtime ? calloc(1, sizeof *function) : NULL;
  if (!function) return NULL;
  function->settings = *settings;
  function->runtime = runtime;
  function->given = calloc((size_t)settings->input_count + 1, sizeof *function->given);
  Status *status = cpu_memory(runtime, DEVICE, DEFAULT_MEMORY, &function->memory);
  for (int64_t i = 1; !status && function->given && i < settings->input_count; i++) {
    const Array *array = &data[i];
    size_t bytes = (size_t)array->size * bytes_of_element(array->dtype);
    status = wrap_tensor(runtime, function->memory, array->data, bytes, array->shape,
                         (size_t)array->rank, array->dtype, &function->given[i]);
  }
  if (!status && settings->model) {
    status = open_session(settings, runtime, settings->model, settings->bytes, &function->session);
  }
  if (!status && function->given) return function;
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

static int run(ModelFunction *function, Session *session, Value *point, Value **outputs) {
  const Settings *settings = &function->settings;
  const Value *inputs[settings->input_count + 1];
  for (int64_t i = 1; i < settings->input_count; i++) inputs[i] = function->given[i];
  inputs[POINT] = point;
  memset(outputs, 0, (size_t)settings->output_count * sizeof *outputs);
  Status *status =
      run_session(function->runtime, session, NULL, settings->inputs, inputs,
                  (size_t)settings->input_count, settings->outputs,
                  (size_t)settings->output_count, outputs);
  if (status) release_status(function->runtime, status);
  return !status;
}

/* Write the elements of a result as float64; return their number, -1 where there is no room. */
static int64_t write_result(const Runtime *runtime, Value *value, double *out, int64_t room) {
  int dtype = 0;
  size_t rank = 0;
  const int64_t *shape = NULL;
  void *data = NULL;
  int64_t count = 1;
  Status *status = tensor_shape(runtime, value, &dtype, &shape, &rank);
  if (!status) status = tensor_data(runtime, value, &data);
  if (status) return release_status(runtime, status), -1;
  for (size_t axis = 0; axis < rank; axis++) count *= shape[axis];
  if (count > room) return -1;
  const ElementKernel *cast = element_kernel(ELEMENTWISE_CastToFloat64, dtype);
  if (dtype == FLOAT64) {
    if (count) memcpy(out, data, (size_t)count * sizeof *out);
  } else if (cast && cast->vectors) {
    cast->vectors(&(Element){.at = {(char *)out, data}}, 0, count);
  } else {
    return -1;
  }
  return count;
}

/* Write the results of a model at a point, each to its place in `out`, or after the one before it
 * where that is NULL; return whether all elements are written, and no others. */
static int evaluate(ModelFunction *function, const double *point, double *const *out,
                    const int64_t *room) {
  const Settings *settings = &function->settings;
  const Runtime *runtime = function->runtime;
  float *converted = NULL;
  void *data = (void *)point;
  Value *outputs[settings->output_count + 1], *value = NULL;
  if (settings->dtype == FLOAT32) {
    data = converted = malloc((size_t)settings->size * sizeof *converted + 1);
    if (!converted) return 0;
    for (int64_t i = 0; i < settings->size; i++) converted[i] = (float)point[i];
  }
  size_t bytes = (size_t)settings->size * bytes_of_element(settings->dtype);
  Status *status = wrap_tensor(runtime, function->memory, data, bytes, &settings->size, 1,
                               settings->dtype, &value);
  int is_done = !status && run(function, function->session, value, outputs);
  if (status) release_status(runtime, status);
  else if (!is_done) {
    Session *plain = plain_session(function);
    is_done = plain && run(function, plain, value, outputs);
  }
  if (is_done) {
    double *next = NULL;
    int64_t left = 0;
    for (int64_t i = 0; i < settings->output_count; i++) {
      if (out[i]) {
        is_done = is_done && !left;
        next = out[i];
        left = room[i];
      }
      int64_t count = is_done ? write_result(runtime, outputs[i], next, left) : -1;
      is_done = count >= 0;
      next += is_done ? count : 0;
      left -= is_done ? count : 0;
      release_value(runtime, outputs[i]);
    }
    is_done = is_done && !left;
  }
  if (value) release_value(runtime, value);
  free(converted);
  return is_done;
}

/* The log-density and its gradient at a point; 0, or a reason, which is a divergence if it is
 * positive. `data` has the function of the density, and that of the other results. */
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

/* The point, and all results of the second function after it. */
EXPORT int64_t pytensor_onnx_expand(uint64_t size, uint64_t expanded, const double *point,
                                    double *out, void *data) {
  ModelFunction *function = ((ModelFunction **)data)[1];
  int64_t outputs = function->settings.output_count;
  if (size != (uint64_t)function->settings.size || expanded < size) return OTHER_SIZE;
  if (size) memcpy(out, point, size * sizeof *out);
  if (!outputs) return expanded == size ? 0 : OTHER_SIZE;
  double *starts[outputs];
  int64_t room[outputs];
  memset(starts, 0, sizeof starts);
  starts[0] = out + size;
  room[0] = (int64_t)(expanded - size);
  return evaluate(function, point, starts, room) ? 0 : FAILED;
}
