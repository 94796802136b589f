/* Run tapes that come over the standard input, and answer with a line for each.
 *
 * A message has its number of bytes, and then as words of 64 bits: the number of words of the tape,
 * these, the number of its inputs, and for each the type, whether it is a constant, the rank, the
 * sizes, the number of words of its elements, and these. Inputs and outputs have memory of their exact
 * size, which sanitizers guard. An answer is `malformed`, `refused` with the reason, or `done` with a
 * checksum of the outputs, which differs where they show memory that nothing has written.
 *
 * The first argument names a file for the outputs: for each its type, its number of bytes, and these, and
 * two zeros after those of a tape. With a second argument vectors are those of all processors. */
#include <stdio.h>
#include <stdlib.h>

#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#endif

#include "../../native/operators.h"
#include "../../native/runner.h"

static const int64_t *word;
static FILE *file;
extern void pytensor_onnx_use_narrow_vectors(int wanted);

static Array next_array(int *is_constant) {
  Array made = {.dtype = (int)*word++};
  *is_constant = (int)*word++;
  made.rank = (int)*word++;
  for (int axis = 0; axis < made.rank; axis++) made.shape[axis] = *word++;
  count_elements(&made);
  int64_t bytes = made.size * (int64_t)bytes_of_element(made.dtype), words = *word++;
  made.data = malloc((size_t)bytes);
  for (int64_t i = 0; i < bytes && words; i++) {
    ((char *)made.data)[i] = ((const char *)word)[i % (8 * words)];
  }
  word += words;
  return made;
}

typedef struct {
  const Array *arrays[64];
  void *data[64];
  int count;
} Results;

static const char *allocate(void *given, int i, const Array *result, void **data) {
  Results *results = given;
  *data = results->data[i] = malloc((size_t)result->size * bytes_of_element(result->dtype));
  results->arrays[i] = result;
  results->count = i + 1;
  return *data ? NULL : "out of memory";
}

static void run(Runner *runner, const Array *inputs) {
  Results results = {.count = 0};
  void *outputs[64];
  const char *problem = run_tape(runner, inputs, allocate, &results, outputs);
  uint64_t sum = 14695981039346656037u;
  for (int i = 0; i < results.count; i++) {
    const Array *array = results.arrays[i];
    int64_t bytes = array->size * (int64_t)bytes_of_element(array->dtype), head[] = {array->dtype, bytes};
    if (file && !problem) {
      fwrite(head, sizeof *head, 2, file);
      fwrite(results.data[i], 1, (size_t)bytes, file);
    }
    for (int64_t k = 0; !problem && k < bytes; k++) {
      sum = (sum ^ ((unsigned char *)results.data[i])[k]) * 1099511628211u;
    }
  }
  for (int i = 0; i < results.count; i++) free(results.data[i]);
  if (problem) printf("refused %s\n", problem);
  else printf("done %016llx\n", (unsigned long long)sum);
}

static void answer(void) {
  int64_t words = *word++;
  const char *tape = (const char *)word;
  word += words;
  Runner *runner = make_runner(&OPERATORS, tape, (size_t)words * sizeof *word);
  int count = (int)*word++;
  Array inputs[64];
  int are_constant[64];
  for (int i = 0; i < count; i++) inputs[i] = next_array(&are_constant[i]);
  if (!runner) printf("malformed\n");
  else if (runner_block(runner)->inputs != count || runner_block(runner)->outputs > 64) printf("refused\n");
  else {
    for (int i = 0; i < count; i++) {
      if (are_constant[i]) set_constant(runner, i);
    }
    run(runner, inputs);
  }
  for (int i = 0; i < count; i++) free(inputs[i].data);
  free_runner(runner);
  if (file) fwrite((int64_t[2]){0}, sizeof(int64_t), 2, file);
  fflush(stdout);
}

int main(int count, char **arguments) {
#ifdef _WIN32
  _setmode(_fileno(stdin), _O_BINARY);
#endif
  file = count > 1 ? fopen(arguments[1], "wb") : NULL;
  pytensor_onnx_use_narrow_vectors(count > 2);
  for (int64_t bytes; fread(&bytes, sizeof bytes, 1, stdin) == 1;) {
    int64_t *message = malloc((size_t)bytes);
    if (!message || fread(message, 1, (size_t)bytes, stdin) != (size_t)bytes) return 1;
    word = message;
    answer();
    free(message);
  }
  if (file) fclose(file);
  return 0;
}
