/* The operator that runs a tape. */
#include "custom_op.h"

static const char *ORT_CALL name(const CustomOp *op) { return (void)op, "Region"; }
static const char *ORT_CALL on_cpu(const CustomOp *op) { return (void)op, NULL; }
static int ORT_CALL any_type(const CustomOp *op, size_t i) { return (void)op, (void)i, 0; }
static size_t ORT_CALL one(const CustomOp *op) { return (void)op, 1; }
static int ORT_CALL variadic(const CustomOp *op, size_t i) { return (void)op, (void)i, VARIADIC_OPERANDS; }
static int ORT_CALL zero(const CustomOp *op) { return (void)op, 0; }
static int ORT_CALL at_least_one(const CustomOp *op) { return (void)op, 1; }
static int ORT_CALL default_memory(const CustomOp *op, size_t i) { return (void)op, (void)i, 0; }
static int ORT_CALL last_version(const CustomOp *op) { return (void)op, INT32_MAX; }

static Status *ORT_CALL create(const CustomOp *op, const Runtime *runtime, const KernelInfo *info,
                               void **made) {
  (void)op, (void)info, (void)made;
  return failure(runtime, "malformed tape");
}
static void ORT_CALL destroy(void *region) { (void)region; }
static Status *ORT_CALL run(void *region, Context *context) { return (void)region, (void)context, NULL; }

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
