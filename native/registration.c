/* Register the operators of the library with the options of a session. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "custom_op.h"
#include "threads.h"

enum { MOST_OPERANDS = 8 };

#define DOMAIN "pytensor.standard"
#define WANTED "pytensor_onnx.functions"
#define REGIONS "pytensor_onnx.regions"
#define THREADS "pytensor_onnx.threads"

enum { LONGEST_KEY = 64 };

/* The operator for a function. */
typedef struct {
  CustomOp op;
  const Kernel *kernel;
  int dtype;
  char name[];
} FunctionOp;

typedef struct {
  const Runtime *runtime;
  const Kernel *kernel;
} FunctionCall;

static const char *ORT_CALL name(const CustomOp *op) { return ((const FunctionOp *)op)->name; }
static const char *ORT_CALL on_cpu(const CustomOp *op) { return (void)op, NULL; }
static int ORT_CALL input_type(const CustomOp *op, size_t i) {
  return operand_dtype(((const FunctionOp *)op)->kernel, ((const FunctionOp *)op)->dtype, i);
}
static int ORT_CALL output_type(const CustomOp *op, size_t i) {
  const FunctionOp *function = (const FunctionOp *)op;
  return i == 1 && function->kernel->second_dtype ? function->kernel->second_dtype : function->dtype;
}
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
  const char *problem = kernel->infer(kernel, in, out, &scratch_bytes);
  if (problem) return failure(runtime, problem);
  for (int i = 0; i < kernel->outputs; i++) {
    count_elements(&out[i]);
    Status *status = output_array(runtime, context, (size_t)i, &out[i]);
    if (status) return status;
  }
  void *scratch = malloc(scratch_bytes + 1);
  problem = scratch ? kernel->run(kernel, in, out, scratch) : "out of memory";
  free(scratch);
  return problem ? failure(runtime, problem) : NULL;
}

/* Add the operator for a function to a domain, if the function has a kernel. */
static Status *add_function(const Runtime *runtime, Domain *domain, const char *name_of_function) {
  int dtype = 0;
  const Kernel *kernel = find_kernel(name_of_function, &dtype);
  if (!kernel) return NULL;
  size_t length = strlen(name_of_function) + 1;
  FunctionOp *made = malloc(sizeof *made + length);
  if (!made) return failure(runtime, "out of memory");
  memcpy(made->name, name_of_function, length);
  made->kernel = kernel;
  made->dtype = dtype;
  made->op = (CustomOp){
      .version = CUSTOM_OP_VERSION,
      .name = name,
      .provider = on_cpu,
      .input_type = input_type,
      .input_count = input_number,
      .output_type = output_type,
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
  return add_op(runtime, domain, &made->op);
}

/* Add the operators for functions, whose names have a comma after each. */
static Status *add_functions(const Runtime *runtime, Domain *domain, char *names) {
  Status *status = NULL;
  for (char *end; !status && (end = strchr(names, ',')); names = end + 1) {
    *end = 0;
    status = add_function(runtime, domain, names);
  }
  return status;
}

/* The operators for a list of functions, which live as long as the process. */
typedef struct Registered Registered;
struct Registered {
  Domain *domain;
  Registered *next;
  char names[];
};

/* Return a copy of the names of the functions that a session has, of all without such a list. */
static Status *wanted_names(const Runtime *runtime, const SessionOptions *options,
                            Registered **wanted) {
  int is_given = 0;
  size_t size = 0;
  Status *status = has_session_entry(runtime, options, WANTED, &is_given);
  if (!status && is_given) status = get_session_entry(runtime, options, WANTED, NULL, &size);
  if (status) return status;
  if (!is_given) size = kernel_names(NULL, 0) + 1;
  *wanted = calloc(1, sizeof **wanted + size);
  if (!*wanted) return failure(runtime, "out of memory");
  if (is_given) return get_session_entry(runtime, options, WANTED, (*wanted)->names, &size);
  kernel_names((*wanted)->names, size);
  return NULL;
}

/* Return the domain of the functions that a session has, the same for equal lists. */
static Status *domain_of_functions(const Runtime *runtime, const SessionOptions *options,
                                   Domain **domain) {
  static Registered *all;
  Registered *wanted = NULL;
  Status *status = wanted_names(runtime, options, &wanted);
  for (Registered *known = all; !status && known; known = known->next) {
    if (strcmp(known->names, wanted->names)) continue;
    *domain = known->domain;
    free(wanted);
    return NULL;
  }
  size_t length = wanted ? strlen(wanted->names) + 1 : 0;
  char *names = malloc(length + 1);
  if (!status && !names) status = failure(runtime, "out of memory");
  if (!status) status = create_domain(runtime, DOMAIN, &wanted->domain);
  if (!status) status = add_functions(runtime, wanted->domain, memcpy(names, wanted->names, length));
  free(names);
  if (status) {
    free(wanted);
    return status;
  }
  wanted->next = all;
  all = wanted;
  *domain = wanted->domain;
  return NULL;
}

/* Return the number of threads that regions of a session may use. */
static Status *threads_of_regions(const Runtime *runtime, const SessionOptions *options,
                                  int *threads) {
  int is_given = 0;
  char given[LONGEST_KEY] = "";
  size_t size = sizeof given;
  Status *status = has_session_entry(runtime, options, THREADS, &is_given);
  if (!status && is_given) status = get_session_entry(runtime, options, THREADS, given, &size);
  int wanted = is_given && !status ? atoi(given) : 1;
  *threads = wanted < 1 ? 1 : wanted < MOST_THREADS ? wanted : MOST_THREADS;
  return status;
}

static Status *domain_of_regions(const Runtime *runtime, const SessionOptions *options,
                                 Domain **domain) {
  static Domain *made[MOST_THREADS + 1];
  int threads = 1;
  Status *status = threads_of_regions(runtime, options, &threads);
  if (!status && !made[threads]) {
    status = create_domain(runtime, "pytensor.kernels", &made[threads]);
    if (!status) status = add_op(runtime, made[threads], region_op(threads));
  }
  *domain = made[threads];
  return status;
}

const RuntimeBase *known_base;

/* The key of the process, which no file knows: sessions that have it run regions. */
static char region_key[LONGEST_KEY];
static atomic_flag is_busy = ATOMIC_FLAG_INIT;

static void begin_alone(void) {
  while (atomic_flag_test_and_set(&is_busy)) {
  }
}

/* Return the key of the process, which is the first that is proposed. */
EXPORT const char *pytensor_onnx_region_key(const char *proposed) {
  begin_alone();
  if (!region_key[0] && strlen(proposed) < sizeof region_key) strcpy(region_key, proposed);
  atomic_flag_clear(&is_busy);
  return region_key;
}

/* Return whether the configuration of a session has the key, or an error if it has another one. */
static Status *may_have_regions(const Runtime *runtime, const SessionOptions *options, int *may) {
  int is_given = 0;
  char given[LONGEST_KEY] = "";
  size_t size = sizeof given;
  *may = 0;
  Status *status = has_session_entry(runtime, options, REGIONS, &is_given);
  if (status || !is_given) return status;
  status = get_session_entry(runtime, options, REGIONS, given, &size);
  *may = !status && region_key[0] && !strcmp(given, region_key);
  return status || *may ? status : failure(runtime, REGIONS " is not the key of this process");
}

/* All programs may register the kernels of functions. Only sessions of this process, whose tapes
 * are its own, have regions too: the words of a file must not reach the reader of tapes. */
EXPORT Status *ORT_CALL RegisterCustomOps(SessionOptions *options, const RuntimeBase *base) {
  const Runtime *runtime = base->get_api(RUNTIME_API_VERSION);
  if (!runtime) return NULL;
  known_base = base;
  int has_regions = 0;
  Domain *regions = NULL, *functions = NULL;
  begin_alone();
  Status *status = may_have_regions(runtime, options, &has_regions);
  if (!status && has_regions) status = domain_of_regions(runtime, options, &regions);
  if (!status) status = domain_of_functions(runtime, options, &functions);
  int names_functions = 0;
  if (!status) status = has_session_entry(runtime, options, WANTED, &names_functions);
  // Sessions that name their functions have none of the draft.
  if (!status && !names_functions) status = add_draft(runtime, options);
  atomic_flag_clear(&is_busy);
  if (!status && regions) status = add_domain(runtime, options, regions);
  return status ? status : add_domain(runtime, options, functions);
}

/* Whether a function of a name has a kernel. */
EXPORT int pytensor_onnx_has_kernel(const char *function) {
  int dtype;
  return find_kernel(function, &dtype) != NULL;
}

/* Return the names of all functions with kernels, each followed by a comma. */
EXPORT const char *FunctionKernels(void) {
  static char names[16384];
  if (!names[0]) kernel_names(names, sizeof names);
  return names;
}
