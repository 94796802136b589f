/* Read tapes, and check that all they refer to exists. */
#include "tape.h"

#include <stdlib.h>
#include <string.h>

#include "plan.h"

typedef struct {
  const int64_t *word, *end;
  int failed;
} Reader;

static int64_t next(Reader *reader, int64_t least, int64_t most) {
  if (reader->word >= reader->end) return reader->failed = 1, least;
  int64_t found = *reader->word++;
  if (found < least || found > most) return reader->failed = 1, least;
  return found;
}

static const int64_t *next_words(Reader *reader, int64_t count) {
  const int64_t *found = reader->word;
  if (count < 0 || reader->end - reader->word < count) return reader->failed = 1, found;
  reader->word += count;
  return found;
}

static const int64_t *next_values(Reader *reader, int64_t count, int64_t least, const Tape *tape) {
  const int64_t *found = next_words(reader, count);
  for (int64_t i = 0; !reader->failed && i < count; i++) {
    if (found[i] < least || found[i] >= tape->values) reader->failed = 1;
    else if (found[i] >= 0) tape->uses[found[i]]++;
  }
  return found;
}

static void read_constant(Reader *reader, Tape *tape, int i) {
  tape->constant_values[i] = (int)next(reader, 0, tape->values - 1);
  Array *array = &tape->constant_arrays[i];
  array->dtype = (int)tape->dtypes[tape->constant_values[i]];
  array->rank = (int)next(reader, 0, MOST_AXES);
  for (int axis = 0; axis < array->rank; axis++) array->shape[axis] = next(reader, 0, 1 << 20);
  count_elements(array);
  int64_t bytes = array->size * (int64_t)bytes_of_element(array->dtype);
  array->data = (void *)next_words(reader, (bytes + 7) / 8);
}

static void read_instruction(Reader *reader, Tape *tape, Instruction *made) {
  made->op = &OPERATORS[next(reader, 0, OPERATOR_COUNT - 1)];
  made->inputs = (int)next(reader, 0, 1 << 16);
  made->outputs = (int)next(reader, 0, 1 << 16);
  made->attributes = (int)next(reader, 0, 1 << 16);
  made->sizes = next(reader, 0, INT64_MAX);
  made->in = next_values(reader, made->inputs, -1, tape);
  made->out = next_words(reader, made->outputs);
  made->attribute = next_words(reader, made->attributes);
  for (int i = 0; !reader->failed && i < made->outputs; i++) {
    if (made->out[i] < 0 || made->out[i] >= tape->values) reader->failed = 1;
  }
}

static void read_block(Reader *reader, Tape *tape, Block *block) {
  block->inputs = (int)next(reader, 0, tape->values);
  block->in = next_words(reader, block->inputs);
  for (int i = 0; !reader->failed && i < block->inputs; i++) {
    if (block->in[i] < 0 || block->in[i] >= tape->values) reader->failed = 1;
  }
  block->outputs = (int)next(reader, 0, 1 << 20);
  block->out = next_values(reader, block->outputs, 0, tape);
  block->count = (int)next(reader, 0, 1 << 24);
  if (reader->failed) return;
  block->instructions = calloc((size_t)block->count + 1, sizeof *block->instructions);
  for (int i = 0; !reader->failed && i < block->count; i++) {
    read_instruction(reader, tape, &block->instructions[i]);
  }
}

static void read_all(Reader *reader, Tape *tape) {
  if (next(reader, TAPE_MAGIC, TAPE_MAGIC) != TAPE_MAGIC) return;
  tape->values = (int)next(reader, 0, 1 << 24);
  tape->dtypes = next_words(reader, tape->values);
  tape->uses = calloc((size_t)tape->values + 1, sizeof *tape->uses);
  tape->constants = (int)next(reader, 0, tape->values);
  if (reader->failed) return;
  tape->constant_values = calloc((size_t)tape->constants + 1, sizeof *tape->constant_values);
  tape->constant_arrays = calloc((size_t)tape->constants + 1, sizeof *tape->constant_arrays);
  for (int i = 0; !reader->failed && i < tape->constants; i++) read_constant(reader, tape, i);
  tape->givens = (int)next(reader, 0, tape->values);
  tape->given = next_words(reader, tape->givens);
  tape->blocks = (int)next(reader, 1, 1 << 20);
  if (reader->failed) return;
  tape->block = calloc((size_t)tape->blocks, sizeof *tape->block);
  for (int i = 0; !reader->failed && i < tape->blocks; i++) read_block(reader, tape, &tape->block[i]);
  for (int i = 0; !reader->failed && i < tape->givens; i++) {
    if (tape->given[i] < 0 || tape->given[i] >= tape->block[0].inputs) reader->failed = 1;
  }
}

Tape *read_tape(const char *bytes, size_t size) {
  Tape *tape = calloc(1, sizeof *tape);
  if (!tape) return NULL;
  tape->words = malloc(size + sizeof(int64_t));
  if (!tape->words) return free(tape), NULL;
  memcpy(tape->words, bytes, size);
  Reader reader = {tape->words, tape->words + size / sizeof(int64_t), 0};
  read_all(&reader, tape);
  if (!reader.failed) return tape;
  free_tape(tape);
  return NULL;
}

void free_tape(Tape *tape) {
  if (!tape) return;
  for (int i = 0; tape->block && i < tape->blocks; i++) free(tape->block[i].instructions);
  free(tape->block);
  free(tape->constant_values);
  free(tape->constant_arrays);
  free(tape->uses);
  free(tape->words);
  free(tape);
}
