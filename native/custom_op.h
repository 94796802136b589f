/* Custom operators of ONNX Runtime. */
#ifndef CUSTOM_OP_H
#define CUSTOM_OP_H

#include "kernel.h"
#include "runtime_api.h"

/* The operator that runs a tape. */
/* Return the operator of regions for sessions with a number of threads; one at a time may call. */
const CustomOp *region_op(int threads);

/* The runtime that has registered the library, NULL before. */
extern const RuntimeBase *known_base;

/* Add the operators of the ONNX draft to the options of a session; one at a time may call. */
Status *add_draft(const Runtime *runtime, SessionOptions *options);

Status *ORT_CALL RegisterCustomOps(SessionOptions *options, const RuntimeBase *base);

static inline Status *failure(const Runtime *runtime, const char *message) {
  return create_status(runtime, RUNTIME_FAIL, message);
}

/* Read an input of a call as an array. */
static inline Status *input_array(const Runtime *runtime, Context *context, size_t i, Array *array) {
  const Value *value = NULL;
  const int64_t *shape = NULL;
  size_t rank = 0;
  Status *status = get_input(runtime, context, i, &value);
  if (!status && !value) status = failure(runtime, "an operand is missing");
  if (!status) status = tensor_shape(runtime, value, &array->dtype, &shape, &rank);
  if (!status && rank > MOST_AXES) status = failure(runtime, "too many axes for a kernel");
  if (!status) status = tensor_data(runtime, (Value *)value, &array->data);
  if (status) return status;
  array->rank = (int)rank;
  array->size = 1;
  for (size_t axis = 0; axis < rank; axis++) {
    array->shape[axis] = shape[axis];
    array->size *= shape[axis];
  }
  return NULL;
}

/* Allocate an output of a call, whose rank and shape are set; its dtype becomes that of the model. */
static inline Status *output_array(const Runtime *runtime, Context *context, size_t i,
                                   Array *array) {
  Value *value = NULL;
  const int64_t *shape = NULL;
  size_t rank = 0;
  Status *status = get_output(runtime, context, i, array->shape, (size_t)array->rank, &value);
  if (!status && !value) status = failure(runtime, "a result is missing");
  if (!status) status = tensor_shape(runtime, value, &array->dtype, &shape, &rank);
  return status ? status : tensor_data(runtime, value, &array->data);
}

#endif
