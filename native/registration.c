/* Register the operators of the library with the options of a session. */
#include <stdlib.h>

#include "custom_op.h"

enum { MOST_OPERANDS = 8, MOST_KERNELS = 64 };

typedef struct {
  CustomOp op;
  const Kernel *kernel;
} FunctionOp;

typedef struct {
  const Runtime *runtime;
  const Kernel *kernel;
} FunctionCall;

static const char *ORT_CALL name(const CustomOp *op) { return ((const FunctionOp *)op)->kernel->name; }
static const char *ORT_CALL on_cpu(const CustomOp *op) { return (void)op, NULL; }
static int ORT_CALL any_type(const CustomOp *op, size_t i) { return (void)op, (void)i, 0; }
static int ORT_CALL required(const CustomOp *op, size_t i) { return (void)op, (void)i, REQUIRED_OPERAND; }
static int ORT_CALL default_memory(const CustomOp *op, size_t i) { return (void)op, (void)i, 0; }
static int ORT_CALL first_version(const CustomOp *op) { return (void)op, 1; }
static int ORT_CALL last_version(const CustomOp *op) { return (void)op, INT32_MAX; }
static size_t ORT_CALL input_number(const CustomOp *op) {
  return (size_t)((const FunctionOp *)op)->kernel->inputs;
}
static size_t ORT_CALL output_number(const CustomOp *op) {
  return (size_t)((const FunctionOp *)op)->kernel->outputs;
}

static Status *ORT_CALL create(const CustomOp *op, const Runtime *runtime, const KernelInfo *info,
                               void **made) {
  (void)info;
  FunctionCall *call = malloc(sizeof *call);
  if (!call) return failure(runtime, "out of memory");
  *call = (FunctionCall){runtime, ((const FunctionOp *)op)->kernel};
  *made = call;
  return NULL;
}

static void ORT_CALL destroy(void *call) { free(call); }

static Status *ORT_CALL run(void *self, Context *context) {
  const Runtime *runtime = ((FunctionCall *)self)->runtime;
  const Kernel *kernel = ((FunctionCall *)self)->kernel;
  Array in[MOST_OPERANDS], out[MOST_OPERANDS];
  size_t scratch_bytes = 0;
  for (int i = 0; i < kernel->inputs; i++) {
    Status *status = input_array(runtime, context, (size_t)i, &in[i]);
    if (status) return status;
  }
  const char *problem = kernel->infer(in, out, &scratch_bytes);
  if (problem) return failure(runtime, problem);
  for (int i = 0; i < kernel->outputs; i++) {
    count_elements(&out[i]);
    Status *status = output_array(runtime, context, (size_t)i, &out[i]);
    if (status) return status;
  }
  void *scratch = malloc(scratch_bytes + 1);
  problem = scratch ? kernel->run(in, out, scratch) : "out of memory";
  free(scratch);
  return problem ? failure(runtime, problem) : NULL;
}

static Status *add_function(const Runtime *runtime, Domain *domain, FunctionOp *slot,
                            const Kernel *kernel) {
  slot->kernel = kernel;
  slot->op = (CustomOp){
      .version = CUSTOM_OP_VERSION,
      .name = name,
      .provider = on_cpu,
      .input_type = any_type,
      .input_count = input_number,
      .output_type = any_type,
      .output_count = output_number,
      .destroy = destroy,
      .input_kind = required,
      .output_kind = required,
      .input_memory = default_memory,
      .create = create,
      .run = run,
      .first_version = first_version,
      .last_version = last_version,
  };
  return add_op(runtime, domain, &slot->op);
}

/* Return the operators of the library in `domains`, the same for each session. */
static Status *make_domains(const Runtime *runtime, Domain *domains[2]) {
  static FunctionOp functions[MOST_KERNELS];
  Status *status = create_domain(runtime, "pytensor.kernels", &domains[0]);
  if (!status) status = add_op(runtime, domains[0], &REGION);
  if (status || !KERNELS[0]) return status;
  status = create_domain(runtime, KERNELS[0]->domain, &domains[1]);
  for (int i = 0; !status && KERNELS[i]; i++) {
    status = add_function(runtime, domains[1], &functions[i], KERNELS[i]);
  }
  return status;
}

EXPORT Status *ORT_CALL RegisterCustomOps(SessionOptions *options, const RuntimeBase *base) {
  /* Sessions refer to the domains, which therefore live as long as the process. */
  static Domain *domains[2];
  const Runtime *runtime = base->get_api(RUNTIME_API_VERSION);
  if (!runtime) return NULL;
  Status *status = domains[0] ? NULL : make_domains(runtime, domains);
  if (!status) status = add_domain(runtime, options, domains[0]);
  if (status || !domains[1]) return status;
  return add_domain(runtime, options, domains[1]);
}
