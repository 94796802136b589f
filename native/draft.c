/* Operators of the ONNX draft of 6 July 2026, for files whose nodes have no functions: states of
 * Threefry-2x32, uniform and normal numbers of float32 and float64, with the bits of
 * `pytensor_onnx.prng`. */
#include <stdio.h>
#include <stdlib.h>

#include "ciphers.h"
#include "custom_op.h"

#define DRAFT "pytensor.draft_2026_07_06"
#define OTHER_TYPE "kernels of the draft draw float32 and float64; files of other types need functions"
#define OTHER_RESULT "the axes of the array must be known, so that its numbers have another type"

typedef enum { INIT, SPLIT, UNIFORM, UNIFORM_LIKE, NORMAL, NORMAL_LIKE, KINDS } Kind;

static const char *const NAMES[] = {"InitPRNG",          "SplitPRNG",    "RandomUniform",
                                    "RandomUniformLike", "RandomNormal", "RandomNormalLike"};

/* An operator; in the domain of all types an attribute or an array tells that of the numbers. */
typedef struct {
  CustomOp op;
  Kind kind;
  int dtype; /* of the domain, ANY_TYPE if it has all */
} DraftOp;

typedef struct {
  const Runtime *runtime;
  Kind kind;
  int dtype;     /* ANY_TYPE if that of an array */
  float first, second; /* bounds, or mean and scale */
  size_t rank;
  int64_t shape[MOST_AXES];
} DraftCall;

static int is_like(Kind kind) { return kind == UNIFORM_LIKE || kind == NORMAL_LIKE; }
static int is_draw(Kind kind) { return kind >= UNIFORM; }
static int is_normal(Kind kind) { return kind >= NORMAL; }
static Kind kind_of(const CustomOp *op) { return ((const DraftOp *)op)->kind; }

static const char *ORT_CALL name(const CustomOp *op) { return NAMES[kind_of(op)]; }
static const char *ORT_CALL on_cpu(const CustomOp *op) { return (void)op, NULL; }
static size_t ORT_CALL input_number(const CustomOp *op) {
  return kind_of(op) == SPLIT || is_like(kind_of(op)) ? 2 : 1;
}
static size_t ORT_CALL output_number(const CustomOp *op) { return is_draw(kind_of(op)) ? 2 : 1; }
static int ORT_CALL input_type(const CustomOp *op, size_t i) {
  return is_like(kind_of(op)) && i == 0 ? ANY_TYPE : INT64;
}
static int ORT_CALL output_type(const CustomOp *op, size_t i) {
  return is_draw(kind_of(op)) && i == 0 ? ((const DraftOp *)op)->dtype : INT64;
}
static int ORT_CALL input_kind(const CustomOp *op, size_t i) {
  return kind_of(op) == SPLIT && i == 1 ? OPTIONAL_OPERAND : REQUIRED_OPERAND;
}
static int ORT_CALL output_kind(const CustomOp *op, size_t i) {
  return (void)i, kind_of(op) == SPLIT ? VARIADIC_OPERANDS : REQUIRED_OPERAND;
}
static int ORT_CALL default_memory(const CustomOp *op, size_t i) { return (void)op, (void)i, 0; }
static int ORT_CALL one(const CustomOp *op) { return (void)op, 1; }
static int ORT_CALL last_version(const CustomOp *op) { return (void)op, INT32_MAX; }

/* Drop the error of an attribute that a node leaves out. */
static int is_given(const Runtime *runtime, Status *status) {
  if (status) release_status(runtime, status);
  return !status;
}

static Status *ORT_CALL create(const CustomOp *op, const Runtime *runtime, const KernelInfo *info,
                               void **made) {
  DraftCall *call = calloc(1, sizeof *call);
  if (!call) return failure(runtime, "out of memory");
  int64_t dtype = 0;
  *call = (DraftCall){.runtime = runtime, .kind = kind_of(op), .dtype = ((const DraftOp *)op)->dtype};
  Status *status = NULL;
  if (is_draw(call->kind)) {
    const char *first = is_normal(call->kind) ? "mean" : "low";
    const char *second = is_normal(call->kind) ? "scale" : "high";
    if (!is_given(runtime, float_attribute(runtime, info, first, &call->first))) call->first = 0;
    if (!is_given(runtime, float_attribute(runtime, info, second, &call->second))) call->second = 1;
    int is_told = is_given(runtime, integer_attribute(runtime, info, "dtype", &dtype));
    if (!call->dtype && is_told) call->dtype = (int)dtype;
    if (!call->dtype && !is_like(call->kind)) call->dtype = FLOAT32;
    int is_known = !call->dtype || call->dtype == FLOAT32 || call->dtype == FLOAT64;
    if (!is_known) status = failure(runtime, OTHER_TYPE);
  }
  if (!status && is_draw(call->kind) && !is_like(call->kind)) {
    status = integers_attribute(runtime, info, "shape", NULL, &call->rank);
    if (!status && call->rank > MOST_AXES) status = failure(runtime, "too many axes for a kernel");
    if (!status && call->rank) {
      status = integers_attribute(runtime, info, "shape", call->shape, &call->rank);
    }
  }
  if (status) free(call);
  else *made = call;
  return status;
}

static void ORT_CALL destroy(void *call) { free(call); }

/* Write the state of a counter. */
static void split(const int64_t *state, uint64_t counter, int64_t *made) {
  uint32_t x = (uint32_t)(counter >> 32), y = (uint32_t)counter;
  threefry_2x32((uint32_t)state[0], (uint32_t)state[1], &x, &y);
  made[0] = x, made[1] = y;
}

static Status *allocate_state(const Runtime *runtime, Context *context, size_t i, int64_t **state) {
  Value *value = NULL;
  const int64_t two = 2;
  *state = NULL;
  Status *status = get_output(runtime, context, i, &two, 1, &value);
  return status || !value ? status : tensor_data(runtime, value, (void **)state);
}

static Status *read_state(const Runtime *runtime, Context *context, size_t i, const int64_t **state) {
  Array array;
  Status *status = input_array(runtime, context, i, &array);
  *state = array.data;
  if (status) return status;
  return array.size == 2 ? NULL : failure(runtime, "a state has two words");
}

static Status *run_init(const Runtime *runtime, Context *context) {
  Array seed;
  int64_t *state = NULL;
  Status *status = input_array(runtime, context, 0, &seed);
  if (!status && seed.size != 1) status = failure(runtime, "a seed is one integer");
  if (!status) status = allocate_state(runtime, context, 0, &state);
  if (status) return status;
  uint64_t number = *(const uint64_t *)seed.data;
  state[0] = (int64_t)(number >> 32), state[1] = (int64_t)(number & 0xffffffff);
  return NULL;
}

static Status *run_split(const Runtime *runtime, Context *context) {
  size_t inputs = 0, outputs = 0;
  const int64_t *state = NULL;
  const Value *data = NULL;
  Array numbers = {.data = NULL};
  Status *status = read_state(runtime, context, 0, &state);
  if (!status) status = input_count(runtime, context, &inputs);
  if (!status) status = output_count(runtime, context, &outputs);
  if (!status && inputs > 1) status = get_input(runtime, context, 1, &data);
  if (!status && data) status = input_array(runtime, context, 1, &numbers);
  if (!status && data && numbers.size != (int64_t)outputs) {
    status = failure(runtime, "data has not one integer for each state");
  }
  for (size_t i = 0; !status && i < outputs; i++) {
    int64_t *made = NULL;
    status = allocate_state(runtime, context, i, &made);
    if (made) split(state, numbers.data ? ((const uint64_t *)numbers.data)[i] : i, made);
  }
  return status;
}

/* Scale numbers by the attributes, with a rounding for each operation. */
#define SCALE(real)                                                                       \
  static void scale_##real(const DraftCall *call, int64_t n, real *y) {                   \
    real first = call->first, second = call->second, room = second - first;               \
    for (int64_t i = 0; is_normal(call->kind) && i < n; i++) y[i] = y[i] * second + first; \
    for (int64_t i = 0; !is_normal(call->kind) && i < n; i++) {                           \
      real moved = y[i] * room + first;                                                   \
      y[i] = moved > first ? moved : first;                                               \
    }                                                                                     \
  }
SCALE(float)
SCALE(double)

static Status *run_draw(const DraftCall *call, Context *context) {
  const Runtime *runtime = call->runtime;
  const int64_t *state = NULL;
  int64_t *after = NULL, key[2];
  Array out = {.dtype = call->dtype, .rank = (int)call->rank}, like;
  memcpy(out.shape, call->shape, sizeof out.shape);
  Status *status = read_state(runtime, context, is_like(call->kind), &state);
  if (!status && is_like(call->kind)) {
    status = input_array(runtime, context, 0, &like);
    out.rank = like.rank;
    if (!status) memcpy(out.shape, like.shape, sizeof out.shape);
    if (!out.dtype) out.dtype = like.dtype;
  }
  if (!status && out.dtype != FLOAT32 && out.dtype != FLOAT64) status = failure(runtime, OTHER_TYPE);
  count_elements(&out);
  int wanted = out.dtype;
  if (!status) status = output_array(runtime, context, 0, &out);
  // The runtime takes the type of an array without known axes for that of the numbers.
  if (!status && out.dtype != wanted) status = failure(runtime, OTHER_RESULT);
  if (!status) status = allocate_state(runtime, context, 1, &after);
  if (status) return status;
  split(state, 1, key);
  if (after) split(state, 0, after);
  static const char *const DRAWS[2][2] = {{"ThreefryUniform_float32", "ThreefryUniform_float64"},
                                          {"ThreefryNormal_float32", "ThreefryNormal_float64"}};
  int dtype, is_double = out.dtype == FLOAT64;
  const Kernel *kernel = find_kernel(DRAWS[is_normal(call->kind)][is_double], &dtype);
  Array in[2] = {{.data = key}, {.data = &out.size}}, flat = out;
  flat.rank = 1, flat.shape[0] = out.size;
  const char *problem = kernel->run(kernel, in, &flat, NULL);
  if (is_double) scale_double(call, out.size, out.data);
  else scale_float(call, out.size, out.data);
  return problem ? failure(runtime, problem) : NULL;
}

static Status *ORT_CALL run(void *self, Context *context) {
  const DraftCall *call = self;
  if (call->kind == INIT) return run_init(call->runtime, context);
  if (call->kind == SPLIT) return run_split(call->runtime, context);
  return run_draw(call, context);
}

/* Set the shape of numbers to an attribute, in memory that the caller releases. */
static Status *shape_of_attribute(const Runtime *runtime, const ShapeContext *context,
                                  TensorInfo **info) {
  const Attribute *told = NULL;
  int64_t shape[MOST_AXES] = {0};
  size_t bytes = 0;
  Status *status = attribute_of(runtime, context, "shape", &told);
  if (!status) {
    status = read_attribute(runtime, told, INTEGERS_ATTRIBUTE, shape, sizeof shape, &bytes);
  }
  if (!status) status = create_info(runtime, info);
  return status ? status : set_shape_of(runtime, *info, shape, bytes / sizeof *shape);
}

/* Name the unknown sizes of an array that have no names, which the runtime would take for -1. */
static Status *name_sizes(const Runtime *runtime, TensorInfo *info, size_t rank) {
  static int count;
  char made[MOST_AXES][32];
  const char *names[MOST_AXES];
  int64_t shape[MOST_AXES];
  Status *status = rank > MOST_AXES ? failure(runtime, "too many axes for a kernel") : NULL;
  if (!status) status = get_shape(runtime, info, shape, rank);
  if (!status) status = get_names_of_sizes(runtime, info, names, rank);
  for (size_t i = 0; !status && i < rank; i++) {
    if (shape[i] >= 0 || *names[i]) continue;
    snprintf(made[i], sizeof made[i], "draws_%d_axis_%d", ++count, (int)i);
    names[i] = made[i];
  }
  return status ? status : set_names_of_sizes(runtime, info, names, rank);
}

/* Tell the runtime the type and the shape of the numbers; those of an array are the context's. */
static Status *ORT_CALL infer_draw(const CustomOp *op, ShapeContext *context) {
  const Runtime *runtime = known_base->get_api(RUNTIME_API_VERSION);
  const Attribute *told = NULL;
  TensorInfo *info = NULL, *own = NULL;
  int64_t given = 0;
  size_t bytes = 0, rank = 0;
  int dtype = ((const DraftOp *)op)->dtype;
  if (!dtype && is_given(runtime, attribute_of(runtime, context, "dtype", &told)) && told) {
    is_given(runtime,
             read_attribute(runtime, told, INTEGER_ATTRIBUTE, &given, sizeof given, &bytes));
    dtype = (int)given;
  }
  Status *status = is_like(kind_of(op)) ? shape_of_input(runtime, context, 0, &info)
                                        : shape_of_attribute(runtime, context, &own);
  if (own) info = own;
  if (!status && !own) status = get_rank(runtime, info, &rank);
  // An array of an unknown number of axes looks like a number: the runtime looks at the results.
  if (!status && !own && !rank) return NULL;
  if (!status && !own) status = name_sizes(runtime, info, rank);
  if (!dtype && !own && !status) status = get_type(runtime, info, &dtype);
  if (!status) status = set_type(runtime, info, dtype ? dtype : FLOAT32);
  if (!status) status = set_output(runtime, context, 0, info);
  if (own) release_info(runtime, own);
  return status;
}

static DraftOp made_op(Kind kind, int dtype) {
  DraftOp made = {.kind = kind, .dtype = dtype};
  made.op = (CustomOp){
      .version = CUSTOM_OP_VERSION,
      .name = name,
      .provider = on_cpu,
      .input_type = input_type,
      .input_count = input_number,
      .output_type = output_type,
      .output_count = output_number,
      .destroy = destroy,
      .input_kind = input_kind,
      .output_kind = output_kind,
      .input_memory = default_memory,
      .least_outputs = one,
      .outputs_have_one_type = one,
      .create = create,
      .run = run,
      .infer_shape = is_draw(kind) ? infer_draw : NULL,
      .first_version = one,
      .last_version = last_version,
  };
  return made;
}

Status *add_draft(const Runtime *runtime, SessionOptions *options) {
  static const struct {
    const char *domain;
    int dtype;
  } DOMAINS[] = {{DRAFT, ANY_TYPE}, {DRAFT ".float32", FLOAT32}, {DRAFT ".float64", FLOAT64}};
  enum { COUNT = sizeof DOMAINS / sizeof *DOMAINS };
  static DraftOp ops[COUNT][KINDS];
  static Domain *made[COUNT];
  Status *status = NULL;
  for (int i = 0; !status && i < COUNT; i++) {
    if (!made[i]) {
      Domain *domain = NULL;
      status = create_domain(runtime, DOMAINS[i].domain, &domain);
      for (int kind = 0; !status && kind < KINDS; kind++) {
        ops[i][kind] = made_op((Kind)kind, DOMAINS[i].dtype);
        status = add_op(runtime, domain, &ops[i][kind].op);
      }
      if (!status) made[i] = domain;
    }
    if (!status) status = add_domain(runtime, options, made[i]);
  }
  return status;
}
