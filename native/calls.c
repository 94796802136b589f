/* Instructions that call kernels of functions. */
#include "planners.h"

enum { MOST_OPERANDS = 8 };

typedef struct {
  const Kernel *kernel;
  Array in[MOST_OPERANDS], out[MOST_OPERANDS];
  const char *from[MOST_OPERANDS];
  char *to[MOST_OPERANDS], *scratch;
} Call;

static const char *run_call(Step *step) {
  Call *call = step->extra;
  for (int i = 0; i < call->kernel->inputs; i++) call->in[i].data = (void *)call->from[i];
  for (int i = 0; i < call->kernel->outputs; i++) call->out[i].data = call->to[i];
  return call->kernel->run(call->kernel, call->in, call->out, call->scratch);
}

/* Return the name of a function, which is in the attributes, with zeros after it; NULL without. */
static const char *name_of_function(const Instruction *instruction) {
  const int64_t *words = instruction->attribute;
  int count = instruction->attributes;
  return count && !((const char *)(words + count))[-1] ? (const char *)words : NULL;
}

void plan_function(Plan *plan, const Instruction *instruction) {
  int dtype = 0;
  size_t scratch_bytes = 0;
  const char *name = name_of_function(instruction);
  if (!name) refuse(plan, "a function has no name");
  const Kernel *kernel = find_kernel(name, &dtype);
  if (!kernel || kernel->inputs != instruction->inputs || kernel->outputs != instruction->outputs) {
    refuse(plan, "a function without kernel");
  }
  Call *call = memory(plan, sizeof *call);
  call->kernel = kernel;
  for (int i = 0; i < kernel->inputs; i++) {
    call->in[i] = *operand(plan, instruction, i);
    if (call->in[i].dtype != operand_dtype(kernel, dtype, (size_t)i)) {
      refuse(plan, "an operand has another type");
    }
  }
  if (kernel->sized_by) {
    int64_t *size = memory(plan, sizeof *size);
    *size = known_integer(plan, instruction->in[kernel->sized_by]);
    call->in[kernel->sized_by].data = size;
  }
  const char *problem = kernel->infer(kernel, call->in, call->out, &scratch_bytes);
  if (problem) refuse(plan, problem);
  Step *step = emit(plan, run_call);
  step->extra = call;
  for (int i = 0; i < kernel->inputs; i++) reads(plan, &call->from[i], instruction->in[i], 0);
  for (int i = 0; i < kernel->outputs; i++) {
    Array *out = &call->out[i];
    count_elements(out);
    if (out->dtype != slot(plan, instruction->out[i])->array.dtype) refuse(plan, "a result has another type");
    set_shape(plan, instruction->out[i], out->rank, out->shape);
    writes(plan, &call->to[i], instruction->out[i], 0);
  }
  int64_t bytes = (int64_t)scratch_bytes + 1;
  writes(plan, &call->scratch, new_value(plan, UINT8, 1, &bytes), 0);
}

int calls_rare_kernel(const Instruction *instruction) {
  const char *name = name_of_function(instruction);
  return !name || is_rare_kernel(name);
}
