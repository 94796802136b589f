/* The operator that runs a tape. */
#include <stdlib.h>

#include "custom_op.h"
#include "operators.h"
#include "runner.h"
#include "threads.h"

enum { FEW = 32 };

/* The operator of sessions with a number of threads. */
typedef struct {
  CustomOp op;
  int threads;
} RegionOp;

typedef struct {
  const Runtime *runtime;
  Runner *runner;
} Region;

/* Where the results of a call go. */
typedef struct {
  const Runtime *runtime;
  Context *context;
  Status *status; /* of the runtime, where it has no memory */
} Results;

static const char *ORT_CALL name(const CustomOp *op) { return (void)op, "Region"; }
static const char *ORT_CALL on_cpu(const CustomOp *op) { return (void)op, NULL; }
static int ORT_CALL any_type(const CustomOp *op, size_t i) { return (void)op, (void)i, 0; }
static size_t ORT_CALL one(const CustomOp *op) { return (void)op, 1; }
static int ORT_CALL variadic(const CustomOp *op, size_t i) {
  return (void)op, (void)i, VARIADIC_OPERANDS;
}
static int ORT_CALL zero(const CustomOp *op) { return (void)op, 0; }
static int ORT_CALL at_least_one(const CustomOp *op) { return (void)op, 1; }
static int ORT_CALL default_memory(const CustomOp *op, size_t i) { return (void)op, (void)i, 0; }
static int ORT_CALL last_version(const CustomOp *op) { return (void)op, INT32_MAX; }

/* Note which inputs are constants of the model. */
static Status *find_constants(Region *region, const KernelInfo *info) {
  Status *status = NULL;
  for (int i = 0; !status && i < runner_block(region->runner)->inputs; i++) {
    const Value *value = NULL;
    int is_constant = 0;
    status = constant_input(region->runtime, info, (size_t)i, &is_constant, &value);
    if (is_constant) set_constant(region->runner, i);
  }
  return status;
}

static void ORT_CALL destroy(void *self) {
  Region *region = self;
  free_runner(region->runner);
  free(region);
}

static Status *ORT_CALL create(const CustomOp *op, const Runtime *runtime, const KernelInfo *info,
                               void **made) {
  size_t size = 0;
  Status *status = string_attribute(runtime, info, "tape", NULL, &size);
  if (status) return status;
  char *text = malloc(size + 1);
  Region *region = calloc(1, sizeof *region);
  if (text && region) {
    status = string_attribute(runtime, info, "tape", text, &size);
    /* The size counts the zero at the end. */
    if (!status) region->runner = make_runner(&OPERATORS, text, size - 1);
    region->runtime = runtime;
  }
  free(text);
  if (region && region->runner) {
    use_threads(region->runner, ((const RegionOp *)op)->threads);
    status = find_constants(region, info);
    if (!status) return *made = region, NULL;
    destroy(region);
    return status;
  }
  free(region);
  return status ? status : failure(runtime, "pytensor.kernels: malformed tape");
}

static const char *allocate(void *results, int i, const Array *result, void **data) {
  Results *of = results;
  Array output = *result;
  of->status = output_array(of->runtime, of->context, (size_t)i, &output);
  *data = output.data;
  /* The model may declare another type than the tape computes. */
  if (!of->status && output.dtype != result->dtype) {
    of->status = failure(of->runtime, "pytensor.kernels: a result of another type");
  }
  return of->status ? "no memory for a result" : NULL;
}

static Status *call(Region *region, Context *context, Array *inputs, void **outputs) {
  Results results = {region->runtime, context, NULL};
  const Block *block = runner_block(region->runner);
  size_t inputs_given = 0, outputs_given = 0;
  Status *counted = input_count(region->runtime, context, &inputs_given);
  if (!counted) counted = output_count(region->runtime, context, &outputs_given);
  if (counted) return counted;
  if (inputs_given != (size_t)block->inputs || outputs_given != (size_t)block->outputs) {
    return failure(region->runtime, "pytensor.kernels: a tape for other operands");
  }
  for (int i = 0; i < block->inputs; i++) {
    Status *status = input_array(region->runtime, context, (size_t)i, &inputs[i]);
    if (status) return status;
  }
  const char *problem = run_tape(region->runner, inputs, allocate, &results, outputs);
  if (results.status) return results.status;
  return problem ? failure(region->runtime, problem) : NULL;
}

static Status *ORT_CALL run(void *self, Context *context) {
  Region *region = self;
  const Block *block = runner_block(region->runner);
  if (block->inputs <= FEW && block->outputs <= FEW) {
    Array inputs[FEW];
    void *outputs[FEW];
    return call(region, context, inputs, outputs);
  }
  Array *inputs = malloc((size_t)(block->inputs + 1) * sizeof *inputs);
  void **outputs = malloc((size_t)(block->outputs + 1) * sizeof *outputs);
  Status *status = inputs && outputs ? call(region, context, inputs, outputs)
                                     : failure(region->runtime, "out of memory");
  free(inputs);
  free(outputs);
  return status;
}

static const CustomOp REGION = {
    .version = CUSTOM_OP_VERSION,
    .name = name,
    .provider = on_cpu,
    .input_type = any_type,
    .input_count = one,
    .output_type = any_type,
    .output_count = one,
    .destroy = destroy,
    .input_kind = variadic,
    .output_kind = variadic,
    .input_memory = default_memory,
    .least_inputs = zero,
    .inputs_have_one_type = zero,
    .least_outputs = at_least_one,
    .outputs_have_one_type = zero,
    .create = create,
    .run = run,
    .first_version = at_least_one,
    .last_version = last_version,
};

const CustomOp *region_op(int threads) {
  static RegionOp ops[MOST_THREADS + 1];
  RegionOp *op = &ops[threads < MOST_THREADS ? threads : MOST_THREADS];
  op->op = REGION;
  op->threads = threads;
  return &op->op;
}
