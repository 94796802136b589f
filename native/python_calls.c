/* Tapes that Python calls with arrays of NumPy, past the session of the runtime.
 *
 * The library is the same for all versions of Python: it gets the functions of the interpreter that
 * it calls, all in the stable interface, and reads arrays where extensions of NumPy read them. */
#ifndef __wasm__
#include <stdlib.h>

#include "operators.h"
#include "runner.h"
#include "runtime_api.h"

typedef struct PyObject {
  intptr_t references;
  void *type;
} PyObject;

typedef struct {
  PyObject head;
  void *scalar_type;
  char kind, type, byte_order, flags;
  int number;
} NumpyDtype;

typedef struct {
  PyObject head;
  char *data;
  int rank;
  intptr_t *shape, *strides;
  PyObject *base;
  NumpyDtype *dtype;
  int flags;
} NumpyArray;

enum { IS_CONTIGUOUS = 1, IS_ALIGNED = 0x100, DTYPE_NUMBERS = 24, FAST_CALL = 0x80, FEW = 32 };

typedef PyObject *FastCall(PyObject *self, PyObject *const *arguments, intptr_t count);

/* The part of the interpreter that is used; the names are its own. */
static struct {
  void *array_type;
  PyObject *None, *empty; /* empty of NumPy */
  int64_t dtypes[DTYPE_NUMBERS]; /* of ONNX, by the numbers of NumPy */
  PyObject *(*PyCFunction_NewEx)(void *definition, PyObject *self, PyObject *module);
  PyObject *(*PyCapsule_New)(void *pointer, const char *name, void (*destructor)(PyObject *));
  void *(*PyCapsule_GetPointer)(PyObject *capsule, const char *name);
  PyObject *(*PyObject_Vectorcall)(PyObject *callee, PyObject *const *arguments, size_t count,
                                   PyObject *names);
  PyObject *(*PyList_New)(intptr_t size);
  int (*PyList_SetItem)(PyObject *list, intptr_t i, PyObject *item);
  PyObject *(*PyTuple_New)(intptr_t size);
  int (*PyTuple_SetItem)(PyObject *tuple, intptr_t i, PyObject *item);
  PyObject *(*PyLong_FromLongLong)(long long value);
  void (*PyErr_Clear)(void);
  void (*Py_IncRef)(PyObject *object);
  void (*Py_DecRef)(PyObject *object);
  void *(*PyEval_SaveThread)(void);
  void (*PyEval_RestoreThread)(void *state);
} python;

EXPORT void pytensor_onnx_set_python(const void *given) { memcpy(&python, given, sizeof python); }

/* A result: its place among the results of a call, and how the array of the last call was made. */
typedef struct {
  int64_t place;
  int32_t number; /* of its dtype in ONNX */
  PyObject *dtype, *shape;
  Array last;
} Result;

typedef struct {
  Runner *runner;
  int arguments, outputs, inputs;
  int64_t *argument; /* the input that an argument is, -1 for unused ones */
  Array *operands;   /* the inputs, with the data of constants, which Python keeps */
  Result *results;
  PyObject *kept;
} Call;

static void close_call(Call *call) {
  if (!call) return;
  for (int i = 0; call->results && i < call->outputs; i++) {
    if (call->results[i].shape) python.Py_DecRef(call->results[i].shape);
  }
  if (call->kept) python.Py_DecRef(call->kept);
  free_runner(call->runner);
  free(call->argument);
  free(call->operands);
  free(call->results);
  free(call);
}

static void close_capsule(PyObject *capsule) {
  close_call(python.PyCapsule_GetPointer(capsule, NULL));
}

/* Read an argument; whether it is an array as the tape reads it, of the type, rank and sizes that the
 * input has: -1 where it has any. */
static int read_argument(PyObject *given, Array *array) {
  if (given->type != python.array_type) return 0;
  const NumpyArray *from = (const NumpyArray *)given;
  int wanted = IS_CONTIGUOUS | IS_ALIGNED, number = from->dtype->number;
  if ((from->flags & wanted) != wanted || from->rank > MOST_AXES) return 0;
  if (number < 0 || number >= DTYPE_NUMBERS || from->dtype->byte_order == '>') return 0;
  if (python.dtypes[number] != array->dtype) return 0;
  if (array->rank >= 0 && array->rank != from->rank) return 0;
  for (int i = 0; i < from->rank; i++) {
    if (array->rank >= 0 && array->shape[i] >= 0 && array->shape[i] != from->shape[i]) return 0;
    array->shape[i] = from->shape[i];
  }
  array->rank = from->rank;
  array->data = from->data;
  count_elements(array);
  return 1;
}

/* Return the tuple of a shape, a new one where the last call had another. */
static PyObject *shape_of(Result *result, const Array *array) {
  if (result->shape && same_shape(&result->last, array)) return result->shape;
  PyObject *made = python.PyTuple_New(array->rank);
  for (int i = 0; made && i < array->rank; i++) {
    python.PyTuple_SetItem(made, i, python.PyLong_FromLongLong(array->shape[i]));
  }
  if (result->shape) python.Py_DecRef(result->shape);
  result->last = *array;
  return result->shape = made;
}

/* Make the arrays of the results in a list; NULL where Python has no memory, or the model declares
 * another type than the tape computes. */
static PyObject *make_results(const Call *call, const Plan *plan, void **outputs) {
  PyObject *list = python.PyList_New(call->outputs);
  for (int i = 0; list && i < call->outputs; i++) {
    Result *result = &call->results[i];
    const Array *array = plan_output(plan, i);
    PyObject *made = NULL, *const arguments[] = {shape_of(result, array), result->dtype};
    if (arguments[0] && array->dtype == result->number) {
      made = python.PyObject_Vectorcall(python.empty, arguments, 2, NULL);
    }
    if (!made) return python.Py_DecRef(list), NULL;
    python.PyList_SetItem(list, result->place, made);
    outputs[i] = ((NumpyArray *)made)->data;
  }
  return list;
}

static PyObject *none(void) {
  python.PyErr_Clear();
  python.Py_IncRef(python.None);
  return python.None;
}

/* Return the list of results, None where the session has to run or to tell the error. */
static PyObject *run(Call *call, PyObject *const *arguments, Array *inputs, void **outputs) {
  memcpy(inputs, call->operands, (size_t)call->inputs * sizeof *inputs);
  for (int i = 0; i < call->arguments; i++) {
    int64_t input = call->argument[i];
    if (input >= 0 && !read_argument(arguments[i], &inputs[input])) return none();
  }
  const char *problem = NULL;
  Plan **place, *plan = take_plan(call->runner, inputs, &place, &problem);
  if (!plan) return none();
  PyObject *list = make_results(call, plan, outputs);
  if (list) {
    void *state = python.PyEval_SaveThread();
    problem = run_plan(plan, inputs, outputs);
    python.PyEval_RestoreThread(state);
  }
  put_plan(place, plan);
  if (list && problem) python.Py_DecRef(list);
  return list && !problem ? list : none();
}

static PyObject *run_call(PyObject *self, PyObject *const *arguments, intptr_t count) {
  Call *call = python.PyCapsule_GetPointer(self, NULL);
  if (count != call->arguments) return none();
  if (call->inputs <= FEW && call->outputs <= FEW) {
    Array inputs[FEW];
    void *outputs[FEW];
    return run(call, arguments, inputs, outputs);
  }
  Array *inputs = malloc((size_t)(call->inputs + 1) * sizeof *inputs);
  void **outputs = malloc((size_t)(call->outputs + 1) * sizeof *outputs);
  PyObject *result = inputs && outputs ? run(call, arguments, inputs, outputs) : none();
  free(inputs);
  free(outputs);
  return result;
}

static const struct {
  const char *name;
  FastCall *function;
  int flags;
  const char *documentation;
} DEFINITION = {"run_tape", run_call, FAST_CALL, NULL};

/* Return a function of Python that runs a tape for `count` arguments, NULL for a malformed one.
 *
 * `operands` has the data of constants, `argument` the input of each argument; `places`, `numbers` of
 * dtypes in ONNX and `dtypes` are by output of the tape. `kept` lives as long as the function. Long steps run in
 * several threads. */
EXPORT PyObject *pytensor_onnx_python_call(const char *tape, size_t bytes, const Array *operands,
                                           int count, const int64_t *argument,
                                           const int64_t *places, const int32_t *numbers,
                                           PyObject *const *dtypes, PyObject *kept,
                                           int threads) {
  Call *call = calloc(1, sizeof *call);
  if (!call) return none();
  call->runner = make_runner_with(&OPERATORS, tape, bytes, operands);
  if (!call->runner) return free(call), none();
  use_threads(call->runner, threads);
  call->arguments = count;
  call->inputs = runner_block(call->runner)->inputs;
  call->outputs = runner_block(call->runner)->outputs;
  call->argument = calloc((size_t)count + 1, sizeof *call->argument);
  call->operands = calloc((size_t)call->inputs + 1, sizeof *call->operands);
  call->results = calloc((size_t)call->outputs + 1, sizeof *call->results);
  if (!call->argument || !call->operands || !call->results) return close_call(call), none();
  memcpy(call->argument, argument, (size_t)count * sizeof *argument);
  memcpy(call->operands, operands, (size_t)call->inputs * sizeof *operands);
  for (int i = 0; i < call->outputs; i++) {
    call->results[i].place = places[i];
    call->results[i].number = numbers[i];
    call->results[i].dtype = dtypes[i];
  }
  PyObject *capsule = python.PyCapsule_New(call, NULL, close_capsule);
  if (!capsule) return close_call(call), none();
  python.Py_IncRef(call->kept = kept);
  PyObject *function = python.PyCFunction_NewEx((void *)&DEFINITION, capsule, NULL);
  python.Py_DecRef(capsule);
  return function ? function : none();
}
#endif
