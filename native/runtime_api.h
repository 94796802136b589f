/* The part of ONNX Runtime's C interface that the library uses.
 *
 * `OrtApi` is a table of functions to which versions only append, so a function is its position. */
#ifndef RUNTIME_API_H
#define RUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef _WIN32
#define ORT_CALL __stdcall
#define EXPORT __declspec(dllexport)
#else
#define ORT_CALL
#define EXPORT __attribute__((visibility("default")))
#endif

enum { RUNTIME_API_VERSION = 24, CUSTOM_OP_VERSION = 18 };
enum { RUNTIME_FAIL = 1, RUNTIME_INVALID_ARGUMENT = 2 };
enum { REQUIRED_OPERAND = 0, OPTIONAL_OPERAND = 1, VARIADIC_OPERANDS = 2 };
enum { ANY_TYPE = 0, INTEGER_ATTRIBUTE = 1, INTEGERS_ATTRIBUTE = 2 };

typedef struct Status Status;
typedef struct SessionOptions SessionOptions;
typedef struct Domain Domain;
typedef struct KernelInfo KernelInfo;
typedef struct Context Context;
typedef struct Value Value;
typedef struct Env Env;
typedef struct Session Session;
typedef struct MemoryInfo MemoryInfo;
typedef struct ShapeContext ShapeContext;
typedef struct Attribute Attribute;
typedef struct TensorInfo TensorInfo;

typedef struct {
  void (*functions[425])(void);
} Runtime;

typedef struct {
  const Runtime *(ORT_CALL *get_api)(uint32_t version);
  const char *(ORT_CALL *get_version)(void);
} RuntimeBase;

typedef struct CustomOp {
  uint32_t version;
  void *(ORT_CALL *create_kernel)(const struct CustomOp *, const Runtime *, const KernelInfo *);
  const char *(ORT_CALL *name)(const struct CustomOp *);
  const char *(ORT_CALL *provider)(const struct CustomOp *);
  int (ORT_CALL *input_type)(const struct CustomOp *, size_t);
  size_t (ORT_CALL *input_count)(const struct CustomOp *);
  int (ORT_CALL *output_type)(const struct CustomOp *, size_t);
  size_t (ORT_CALL *output_count)(const struct CustomOp *);
  void (ORT_CALL *compute)(void *, Context *);
  void (ORT_CALL *destroy)(void *);
  int (ORT_CALL *input_kind)(const struct CustomOp *, size_t);
  int (ORT_CALL *output_kind)(const struct CustomOp *, size_t);
  int (ORT_CALL *input_memory)(const struct CustomOp *, size_t);
  int (ORT_CALL *least_inputs)(const struct CustomOp *);
  int (ORT_CALL *inputs_have_one_type)(const struct CustomOp *);
  int (ORT_CALL *least_outputs)(const struct CustomOp *);
  int (ORT_CALL *outputs_have_one_type)(const struct CustomOp *);
  Status *(ORT_CALL *create)(const struct CustomOp *, const Runtime *, const KernelInfo *, void **);
  Status *(ORT_CALL *run)(void *, Context *);
  Status *(ORT_CALL *infer_shape)(const struct CustomOp *, ShapeContext *);
  int (ORT_CALL *first_version)(const struct CustomOp *);
  int (ORT_CALL *last_version)(const struct CustomOp *);
  size_t (ORT_CALL *in_place)(int **, int **);
  void (ORT_CALL *release_in_place)(int *, int *);
  size_t (ORT_CALL *aliases)(int **, int **);
  void (ORT_CALL *release_aliases)(int *, int *);
} CustomOp;

#define RUNTIME_FUNCTION(result, name, position, ...)                              \
  static inline result name(const Runtime *runtime, __VA_ARGS__) {                 \
    typedef result(ORT_CALL *Function)(__VA_ARGS__);                               \
    return ((Function)runtime->functions[position])(RUNTIME_ARGUMENTS_##position); \
  }

#define RUNTIME_ARGUMENTS_0 code, message
RUNTIME_FUNCTION(Status *, create_status, 0, int code, const char *message)
#define RUNTIME_ARGUMENTS_26 name, domain
RUNTIME_FUNCTION(Status *, create_domain, 26, const char *name, Domain **domain)
#define RUNTIME_ARGUMENTS_27 domain, op
RUNTIME_FUNCTION(Status *, add_op, 27, Domain *domain, const CustomOp *op)
#define RUNTIME_ARGUMENTS_28 options, domain
RUNTIME_FUNCTION(Status *, add_domain, 28, SessionOptions *options, Domain *domain)
#define RUNTIME_ARGUMENTS_51 value, data
RUNTIME_FUNCTION(Status *, tensor_data, 51, Value *value, void **data)
#define RUNTIME_ARGUMENTS_57 info
RUNTIME_FUNCTION(Status *, create_info, 57, TensorInfo **info)
#define RUNTIME_ARGUMENTS_58 info, dtype
RUNTIME_FUNCTION(Status *, set_type, 58, TensorInfo *info, int dtype)
#define RUNTIME_ARGUMENTS_59 info, shape, rank
RUNTIME_FUNCTION(Status *, set_shape_of, 59, TensorInfo *info, const int64_t *shape, size_t rank)
#define RUNTIME_ARGUMENTS_60 info, dtype
RUNTIME_FUNCTION(Status *, get_type, 60, const TensorInfo *info, int *dtype)
#define RUNTIME_ARGUMENTS_61 info, rank
RUNTIME_FUNCTION(Status *, get_rank, 61, const TensorInfo *info, size_t *rank)
#define RUNTIME_ARGUMENTS_62 info, shape, rank
RUNTIME_FUNCTION(Status *, get_shape, 62, const TensorInfo *info, int64_t *shape, size_t rank)
#define RUNTIME_ARGUMENTS_63 info, names, rank
RUNTIME_FUNCTION(Status *, get_names_of_sizes, 63, const TensorInfo *info, const char **names,
                 size_t rank)
#define RUNTIME_ARGUMENTS_85 info, name, value
RUNTIME_FUNCTION(Status *, float_attribute, 85, const KernelInfo *info, const char *name,
                 float *value)
#define RUNTIME_ARGUMENTS_86 info, name, value
RUNTIME_FUNCTION(Status *, integer_attribute, 86, const KernelInfo *info, const char *name,
                 int64_t *value)
#define RUNTIME_ARGUMENTS_87 info, name, text, size
RUNTIME_FUNCTION(Status *, string_attribute, 87, const KernelInfo *info, const char *name,
                 char *text, size_t *size)
#define RUNTIME_ARGUMENTS_88 context, count
RUNTIME_FUNCTION(Status *, input_count, 88, const Context *context, size_t *count)
#define RUNTIME_ARGUMENTS_89 context, count
RUNTIME_FUNCTION(Status *, output_count, 89, const Context *context, size_t *count)
#define RUNTIME_ARGUMENTS_90 context, i, value
RUNTIME_FUNCTION(Status *, get_input, 90, const Context *context, size_t i, const Value **value)
#define RUNTIME_ARGUMENTS_91 context, i, shape, rank, value
RUNTIME_FUNCTION(Status *, get_output, 91, Context *context, size_t i, const int64_t *shape,
                 size_t rank, Value **value)
#define RUNTIME_ARGUMENTS_99 info
RUNTIME_FUNCTION(void, release_info, 99, TensorInfo *info)
#define RUNTIME_ARGUMENTS_163 info, name, values, size
RUNTIME_FUNCTION(Status *, integers_attribute, 163, const KernelInfo *info, const char *name,
                 int64_t *values, size_t *size)
#define RUNTIME_ARGUMENTS_237 options, key, found
RUNTIME_FUNCTION(Status *, has_session_entry, 237, const SessionOptions *options, const char *key,
                 int *found)
#define RUNTIME_ARGUMENTS_238 options, key, text, size
RUNTIME_FUNCTION(Status *, get_session_entry, 238, const SessionOptions *options, const char *key,
                 char *text, size_t *size)
#define RUNTIME_ARGUMENTS_249 info, i, is_constant, value
RUNTIME_FUNCTION(Status *, constant_input, 249, const KernelInfo *info, size_t i, int *is_constant,
                 const Value **value)
#define RUNTIME_ARGUMENTS_268 context, i, info
RUNTIME_FUNCTION(Status *, shape_of_input, 268, const ShapeContext *context, size_t i,
                 TensorInfo **info)
#define RUNTIME_ARGUMENTS_269 context, name, attribute
RUNTIME_FUNCTION(Status *, attribute_of, 269, const ShapeContext *context, const char *name,
                 const Attribute **attribute)
#define RUNTIME_ARGUMENTS_270 context, i, info
RUNTIME_FUNCTION(Status *, set_output, 270, const ShapeContext *context, size_t i,
                 const TensorInfo *info)
#define RUNTIME_ARGUMENTS_271 info, names, rank
RUNTIME_FUNCTION(Status *, set_names_of_sizes, 271, TensorInfo *info, const char **names,
                 size_t rank)
#define RUNTIME_ARGUMENTS_272 attribute, type, data, size, written
RUNTIME_FUNCTION(Status *, read_attribute, 272, const Attribute *attribute, int type, void *data,
                 size_t size, size_t *written)
#define RUNTIME_ARGUMENTS_414 value, dtype, shape, rank
RUNTIME_FUNCTION(Status *, tensor_shape, 414, const Value *value, int *dtype,
                 const int64_t **shape, size_t *rank)

/* Sessions of the library's own. */
#define RUNTIME_ARGUMENTS_3 level, name, env
RUNTIME_FUNCTION(Status *, create_env, 3, int level, const char *name, Env **env)
#define RUNTIME_ARGUMENTS_8 env, model, size, options, session
RUNTIME_FUNCTION(Status *, create_session, 8, const Env *env, const void *model, size_t size,
                 const SessionOptions *options, Session **session)
#define RUNTIME_ARGUMENTS_9 session, settings, names, inputs, count, results, wanted, outputs
RUNTIME_FUNCTION(Status *, run_session, 9, Session *session, const void *settings,
                 const char *const *names, const Value *const *inputs, size_t count,
                 const char *const *results, size_t wanted, Value **outputs)
#define RUNTIME_ARGUMENTS_10 options
RUNTIME_FUNCTION(Status *, create_options, 10, SessionOptions **options)
#define RUNTIME_ARGUMENTS_22 options, level
RUNTIME_FUNCTION(Status *, set_severity, 22, SessionOptions *options, int level)
#define RUNTIME_ARGUMENTS_24 options, count
RUNTIME_FUNCTION(Status *, set_threads, 24, SessionOptions *options, int count)
#define RUNTIME_ARGUMENTS_49 info, data, bytes, shape, rank, dtype, value
RUNTIME_FUNCTION(Status *, wrap_tensor, 49, const MemoryInfo *info, void *data, size_t bytes,
                 const int64_t *shape, size_t rank, int dtype, Value **value)
#define RUNTIME_ARGUMENTS_69 allocator, type, info
RUNTIME_FUNCTION(Status *, cpu_memory, 69, int allocator, int type, MemoryInfo **info)
#define RUNTIME_ARGUMENTS_93 status
RUNTIME_FUNCTION(void, release_status, 93, Status *status)
#define RUNTIME_ARGUMENTS_94 info
RUNTIME_FUNCTION(void, release_memory, 94, MemoryInfo *info)
#define RUNTIME_ARGUMENTS_95 session
RUNTIME_FUNCTION(void, release_session, 95, Session *session)
#define RUNTIME_ARGUMENTS_96 value
RUNTIME_FUNCTION(void, release_value, 96, Value *value)
#define RUNTIME_ARGUMENTS_100 options
RUNTIME_FUNCTION(void, release_options, 100, SessionOptions *options)
#define RUNTIME_ARGUMENTS_130 options, key, text
RUNTIME_FUNCTION(Status *, add_entry, 130, SessionOptions *options, const char *key,
                 const char *text)

#endif
