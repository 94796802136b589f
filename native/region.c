/* The operator that runs a tape. */
#include <stdlib.h>
#include <string.h>

#include "custom_op.h"
#include "plan.h"

enum { MOST_PLANS = 8, FEW = 32, LARGE_PLAN = 1 << 22 };

/* A call takes a plan out of its place and puts it back, so two calls never share one. The first
 * place is the only one of plans that take much memory. */
typedef struct {
  const Runtime *runtime;
  Tape *tape;
  char *are_constant; /* whether an input has the same memory in every call */
  Plan *plans[MOST_PLANS];
  unsigned next; /* the place whose plan a new one replaces */
} Region;

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
  int count = region->tape->block[0].inputs;
  Status *status = NULL;
  region->are_constant = calloc((size_t)count + 1, 1);
  if (!region->are_constant) return failure(region->runtime, "out of memory");
  for (int i = 0; !status && i < count; i++) {
    const Value *value = NULL;
    int is_constant = 0;
    status = constant_input(region->runtime, info, (size_t)i, &is_constant, &value);
    region->are_constant[i] = is_constant != 0;
  }
  return status;
}

static void ORT_CALL destroy(void *self) {
  Region *region = self;
  for (int i = 0; i < MOST_PLANS; i++) free_plan(region->plans[i]);
  free_tape(region->tape);
  free(region->are_constant);
  free(region);
}

static Status *ORT_CALL create(const CustomOp *op, const Runtime *runtime, const KernelInfo *info,
                               void **made) {
  (void)op;
  size_t size = 0;
  Status *status = string_attribute(runtime, info, "tape", NULL, &size);
  if (status) return status;
  char *text = malloc(size + 1);
  Region *region = calloc(1, sizeof *region);
  if (text && region) {
    status = string_attribute(runtime, info, "tape", text, &size);
    /* The size counts the zero at the end. */
    if (!status) region->tape = read_tape(text, size - 1);
    region->runtime = runtime;
  }
  free(text);
  if (region && region->tape) {
    status = find_constants(region, info);
    if (!status) return *made = region, NULL;
    destroy(region);
    return status;
  }
  free(region);
  return status ? status : failure(runtime, "pytensor.kernels: malformed tape");
}

static Plan *take(Plan **place) { return __atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL); }

static void put(Plan **place, Plan *plan) {
  free_plan(__atomic_exchange_n(place, plan, __ATOMIC_ACQ_REL));
}

/* Take a plan for inputs out of its place, or make one for the place that is next. */
static Plan *plan_for(Region *region, const Array *inputs, Plan ***place, const char **problem) {
  for (int i = 0; i < MOST_PLANS; i++) {
    *place = &region->plans[i];
    Plan *plan = take(*place);
    if (!plan) continue;
    if (plan_fits(plan, inputs)) return plan;
    put(*place, plan);
  }
  Plan *made = make_plan(region->tape, inputs, region->are_constant, problem);
  if (made && plan_bytes(made) > LARGE_PLAN) {
    *place = &region->plans[0];
  } else {
    unsigned next = __atomic_fetch_add(&region->next, 1, __ATOMIC_RELAXED);
    *place = &region->plans[1 + next % (MOST_PLANS - 1)];
  }
  return made;
}

static Status *allocate_outputs(const Runtime *runtime, Context *context, const Tape *tape,
                                const Plan *plan, void **outputs) {
  for (int i = 0; i < tape->block[0].outputs; i++) {
    Array output = *plan_output(plan, i);
    Status *status = output_array(runtime, context, (size_t)i, &output);
    if (status) return status;
    outputs[i] = output.data;
  }
  return NULL;
}

static Status *call(Region *region, Context *context, Array *inputs, void **outputs) {
  const Runtime *runtime = region->runtime;
  Plan **place = NULL;
  const char *problem = NULL;
  for (int i = 0; i < region->tape->block[0].inputs; i++) {
    Status *status = input_array(runtime, context, (size_t)i, &inputs[i]);
    if (status) return status;
  }
  Plan *plan = plan_for(region, inputs, &place, &problem);
  if (!plan) return failure(runtime, problem);
  Status *status = allocate_outputs(runtime, context, region->tape, plan, outputs);
  if (!status) problem = run_plan(plan, inputs, outputs);
  put(place, plan);
  return problem ? failure(runtime, problem) : status;
}

static Status *ORT_CALL run(void *self, Context *context) {
  Region *region = self;
  const Block *block = &region->tape->block[0];
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

const CustomOp REGION = {
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
