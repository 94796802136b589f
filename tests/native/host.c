/* A program that runs a model with the kernels, as C and as C++: host KERNELS MODEL N prints the
 * bits of N numbers of the state (0, 42). The functions are those of onnxruntime_c_api.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../native/runtime_api.h"

#define RUNTIME_ARGUMENTS_7 env, path, options, session
RUNTIME_FUNCTION(Status *, open_model, 7, const Env *env, const char *path,
                 const SessionOptions *options, Session **session)
#define RUNTIME_ARGUMENTS_29 options, path, handle
RUNTIME_FUNCTION(Status *, register_library, 29, SessionOptions *options, const char *path,
                 void **handle)
#define RUNTIME_ARGUMENTS_2 status
RUNTIME_FUNCTION(const char *, message_of, 2, const Status *status)

#ifdef __cplusplus
extern "C"
#endif
    const RuntimeBase *OrtGetApiBase(void);

static const Runtime *runtime;

static void check(Status *status) {
  if (!status) return;
  fprintf(stderr, "%s\n", message_of(runtime, status));
  exit(1);
}

int main(int count, char **given) {
  if (count < 4) return 2;
  enum { SEVERE = 4, INT64_TYPE = 7 };
  runtime = OrtGetApiBase()->get_api(RUNTIME_API_VERSION);
  Env *env = NULL;
  SessionOptions *options = NULL;
  Session *session = NULL;
  MemoryInfo *memory = NULL;
  void *handle = NULL, *data = NULL;
  check(create_env(runtime, SEVERE, "host", &env));
  check(create_options(runtime, &options));
  check(register_library(runtime, options, given[1], &handle));
  check(open_model(runtime, env, given[2], options, &session));
  check(cpu_memory(runtime, 0, 0, &memory));
  int64_t state[] = {0, 42}, n = atoll(given[3]), two = 2;
  Value *inputs[2] = {NULL, NULL}, *output = NULL;
  check(wrap_tensor(runtime, memory, state, sizeof state, &two, 1, INT64_TYPE, &inputs[0]));
  check(wrap_tensor(runtime, memory, &n, sizeof n, NULL, 0, INT64_TYPE, &inputs[1]));
  const char *names[] = {"state", "n"}, *results[] = {"numbers"};
  check(run_session(runtime, session, NULL, names, (const Value *const *)inputs, 2, results, 1,
                    &output));
  check(tensor_data(runtime, output, &data));
  for (int64_t i = 0; i < n; i++) printf("%08" PRIx32 "\n", ((const uint32_t *)data)[i]);
  return 0;
}
