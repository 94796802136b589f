/* Read tapes, and check all that planners rely on.
 *
 * A tape may be damaged, or the work of an adversary. What does not depend on sizes is checked here,
 * once: that values are defined once and before their uses, within the block or around it, that an
 * instruction has the operands, results, attributes and types of its operator, and that bodies are
 * nested. What depends on sizes, planners check. */
#include "tape.h"

#include <stdlib.h>
#include <string.h>

#define ONCE static __attribute__((noinline)) /* the module is small before it is fast */

enum { UNDEFINED = -2, EVERYWHERE = -1, MOST_DEPTH = 64 };

/* Where a value is defined: the block, and the index of the instruction, -1 for inputs. */
typedef struct {
  int block, index;
} Definition;

/* The instruction whose body a block is, and the number of blocks around it. */
typedef struct {
  int block, index, depth;
} Owner;

typedef struct {
  const int64_t *word, *end;
  int failed;
  Tape *tape;
  Definition *definitions;
  Owner *owners;
} Reader;

static uint32_t digest_of(const unsigned char *bytes, size_t size) {
  uint32_t table[256], digest = 0xffffffff;
  for (uint32_t i = 0; i < 256; i++) {
    table[i] = i;
    for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
  }
  for (size_t i = 0; i < size; i++) digest = digest >> 8 ^ table[(digest ^ bytes[i]) & 255];
  return ~digest;
}

ONCE int64_t next(Reader *reader, int64_t least, int64_t most) {
  if (reader->word >= reader->end) return reader->failed = 1, least;
  int64_t found = *reader->word++;
  if (found < least || found > most) return reader->failed = 1, least;
  return found;
}

/* Return a number of things of which each has some words at least. */
ONCE int next_count(Reader *reader, int64_t least, int64_t words) {
  int64_t rest = (reader->end - reader->word) / words;
  return (int)next(reader, least, rest < INT32_MAX ? rest : INT32_MAX);
}

ONCE const int64_t *next_words(Reader *reader, int64_t count) {
  const int64_t *found = reader->word;
  if (count < 0 || reader->end - reader->word < count) return reader->failed = 1, found;
  reader->word += count;
  return found;
}

ONCE void *zeros(Reader *reader, int64_t count, size_t bytes) {
  void *made = calloc((size_t)count + 1, bytes);
  if (!made) reader->failed = 1;
  return made;
}

/* Values. */

ONCE void define(Reader *reader, int64_t value, int block, int index) {
  if (value < 0 || value >= reader->tape->values) reader->failed = 1;
  else if (reader->definitions[value].block != UNDEFINED) reader->failed = 1;
  else reader->definitions[value] = (Definition){block, index};
}

/* Use a value in an instruction, or as an output after all of them. */
ONCE void use(Reader *reader, int64_t value, int block, int index) {
  if (value < 0 || value >= reader->tape->values) {
    reader->failed = 1;
    return;
  }
  reader->tape->uses[value]++;
  Definition found = reader->definitions[value];
  if (found.block == EVERYWHERE) return;
  while (block > found.block && found.block >= 0) {
    index = reader->owners[block].index;
    block = reader->owners[block].block;
  }
  if (block != found.block || found.index >= index) reader->failed = 1;
}

static int is_dtype(int64_t word) {
  switch (word) {
    case FLOAT32: case FLOAT64: case BOOL: case UINT8: case INT8: case UINT16: case INT16:
    case UINT32: case INT32: case UINT64: case INT64: return 1;
    default: return 0;
  }
}

static void read_constant(Reader *reader, Tape *tape, int i) {
  int64_t value = next(reader, 0, tape->values - 1);
  define(reader, value, EVERYWHERE, 0);
  if (reader->failed) return;
  Array *array = &tape->constant_arrays[i];
  tape->constant_values[i] = (int)value;
  array->dtype = (int)tape->dtypes[value];
  int64_t rank = next(reader, 0, MOST_AXES);
  const int64_t *shape = next_words(reader, rank);
  if (reader->failed || set_sizes(array, rank, shape)) {
    reader->failed = 1;
    return;
  }
  int64_t bytes = array->size * (int64_t)bytes_of_element(array->dtype);
  array->data = (void *)next_words(reader, (bytes + 7) / 8);
}

/* Instructions. */

/* Whether a type fits a letter of `Operator.types`; `common` is that of the letters T and F. */
static int has_type(char letter, int dtype, int *common) {
  switch (letter) {
    case 'I': return dtype == INT64;
    case 'i': return dtype == INT64 || dtype == INT32;
    case 'B': return dtype == BOOL;
    case '*': return 1;
    default: break;
  }
  if (!*common) *common = dtype;
  return *common == dtype && (letter == 'T' || dtype == FLOAT64 || dtype == FLOAT32);
}

/* Whether operands, or results, fit the letters until `>` or the end, which is passed over. */
static int fit(const Tape *tape, const char **letters, const int64_t *values, int count, int *common) {
  const char *types = *letters;
  int may_lack = 0, i = 0;
  for (; *types && *types != '>'; types++) {
    if (*types == '?') may_lack = 1;
    if (*types == '?' || *types == '+') continue;
    if (i == count && !may_lack) return 0;
    for (int end = types[1] == '+' || i == count ? count : i + 1; i < end; i++) {
      int is_there = values[i] >= 0;
      if (is_there ? !has_type(*types, (int)tape->dtypes[values[i]], common) : !may_lack) return 0;
    }
  }
  *letters = types + 1;
  return i == count;
}

static int is_well_formed(const Tape *tape, const Instruction *made) {
  const Operator *op = made->op;
  const char *letters = op->types;
  int common = 0;
  int result = op->kind == ELEMENTWISE ? tape->operators->results[op - tape->operators->all] : 0;
  if (made->attributes < op->attributes) return 0;
  if (!fit(tape, &letters, made->in, made->inputs, &common)) return 0;
  if (result) return made->outputs == 1 && tape->dtypes[made->out[0]] == result;
  return fit(tape, &letters, made->out, made->outputs, &common);
}

int bodies_of(const Instruction *instruction, const int64_t **bodies) {
  int kind = instruction->op->kind;
  *bodies = instruction->attribute + (kind == SCAN ? 2 : kind == LOOP ? 1 : 0);
  return kind == IF ? 2 : kind >= SCAN;
}

/* Note whose bodies some blocks are, each of one instruction that stands before it. */
static void own_bodies(Reader *reader, const Instruction *made, int block, int index) {
  const int64_t *bodies;
  for (int k = bodies_of(made, &bodies); !reader->failed && k-- > 0;) {
    int64_t body = bodies[k];
    int depth = reader->owners[block].depth + 1;
    if (body <= block || body >= reader->tape->blocks || depth > MOST_DEPTH ||
        reader->owners[body].depth) {
      reader->failed = 1;
    } else {
      reader->owners[body] = (Owner){block, index, depth};
    }
  }
}

static void read_instruction(Reader *reader, Tape *tape, Instruction *made, int block, int index) {
  made->op = &tape->operators->all[next(reader, 0, tape->operators->count - 1)];
  made->inputs = (int)next(reader, 0, 1 << 16);
  made->outputs = (int)next(reader, 0, 1 << 16);
  made->attributes = (int)next(reader, 0, 1 << 16);
  made->sizes = next(reader, 0, INT64_MAX);
  made->in = next_words(reader, made->inputs);
  made->out = next_words(reader, made->outputs);
  made->attribute = next_words(reader, made->attributes);
  for (int i = 0; !reader->failed && i < made->inputs; i++) {
    if (made->in[i] != -1) use(reader, made->in[i], block, index);
  }
  for (int i = 0; !reader->failed && i < made->outputs; i++) {
    define(reader, made->out[i], block, index);
  }
  if (reader->failed) return;
  if (is_well_formed(tape, made)) own_bodies(reader, made, block, index);
  else reader->failed = 1;
}

static void read_block(Reader *reader, Tape *tape, int at) {
  Block *block = &tape->block[at];
  if (at && !reader->owners[at].depth) reader->failed = 1;
  block->inputs = next_count(reader, 0, 1);
  block->in = next_words(reader, block->inputs);
  for (int i = 0; !reader->failed && i < block->inputs; i++) define(reader, block->in[i], at, -1);
  block->outputs = next_count(reader, 0, 1);
  block->out = next_words(reader, block->outputs);
  int count = next_count(reader, 0, 5);
  if (reader->failed) return;
  block->instructions = zeros(reader, count, sizeof *block->instructions);
  for (; !reader->failed && block->count < count; block->count++) {
    read_instruction(reader, tape, &block->instructions[block->count], at, block->count);
  }
  for (int i = 0; !reader->failed && i < block->outputs; i++) {
    use(reader, block->out[i], at, block->count);
  }
}

/* Bodies. */

static int same_dtypes(const Tape *tape, const int64_t *some, const int64_t *others, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (some[i] < 0 || tape->dtypes[some[i]] != tape->dtypes[others[i]]) return 0;
  }
  return 1;
}

static int fits_if(const Tape *tape, const Instruction *at) {
  for (int k = 0; k < 2; k++) {
    const Block *body = &tape->block[at->attribute[k]];
    if (body->inputs || body->outputs != at->outputs) return 0;
    if (!same_dtypes(tape, body->out, at->out, at->outputs)) return 0;
  }
  return 1;
}

/* Whether a loop has states and results as its body has them, from an operand, an input and an
 * output on. */
static int fits_states(const Tape *tape, const Instruction *at, const Block *body, int64_t states,
                       int from, int in, int out) {
  return same_dtypes(tape, at->in + from, body->in + in, states) &&
         same_dtypes(tape, body->in + in, body->out + out, states) &&
         same_dtypes(tape, body->out + out, at->out, at->outputs);
}

static int fits_scan(const Tape *tape, const Instruction *at) {
  int64_t states = at->attribute[0], arrays = at->attribute[1];
  const Block *body = &tape->block[at->attribute[2]];
  if (states < 0 || states > at->outputs || arrays < 1 || arrays > at->inputs) return 0;
  if (at->inputs < states + arrays) return 0;
  if (at->attributes != 3 + arrays + at->outputs - states) return 0;
  if (body->inputs != states + arrays || body->outputs != at->outputs) return 0;
  return same_dtypes(tape, at->in + states, body->in + states, arrays) &&
         fits_states(tape, at, body, states, 0, 0, 0);
}

static int fits_loop(const Tape *tape, const Instruction *at) {
  int64_t states = at->attribute[0];
  const Block *body = &tape->block[at->attribute[1]];
  if (states < 0 || states > at->outputs || at->inputs < 2 + states) return 0;
  if (body->inputs != 2 + states || body->outputs != 1 + at->outputs) return 0;
  if (tape->dtypes[body->in[0]] != INT64 || tape->dtypes[body->in[1]] != BOOL) return 0;
  return tape->dtypes[body->out[0]] == BOOL && fits_states(tape, at, body, states, 2, 2, 1);
}

static void check_bodies(Reader *reader, const Tape *tape, const Block *block) {
  for (const Instruction *at = block->instructions; at < block->instructions + block->count; at++) {
    int kind = at->op->kind;
    int fits = kind == IF     ? fits_if(tape, at)
               : kind == SCAN ? fits_scan(tape, at)
               : kind == LOOP ? fits_loop(tape, at)
                              : 1;
    if (!fits) reader->failed = 1;
  }
}

/* The tape. */

static void read_values(Reader *reader, Tape *tape) {
  tape->values = next_count(reader, 0, 1);
  tape->dtypes = next_words(reader, tape->values);
  tape->uses = zeros(reader, tape->values, sizeof *tape->uses);
  reader->definitions = zeros(reader, tape->values, sizeof *reader->definitions);
  for (int i = 0; !reader->failed && i < tape->values; i++) {
    reader->definitions[i].block = UNDEFINED;
    if (!is_dtype(tape->dtypes[i])) reader->failed = 1;
  }
  int count = next_count(reader, 0, 2);
  if (reader->failed) return;
  tape->constant_values = zeros(reader, count, sizeof *tape->constant_values);
  tape->constant_arrays = zeros(reader, count, sizeof *tape->constant_arrays);
  for (; !reader->failed && tape->constants < count; tape->constants++) {
    read_constant(reader, tape, tape->constants);
  }
}

static void read_all(Reader *reader, Tape *tape) {
  next(reader, TAPE_MAGIC, TAPE_MAGIC);
  next(reader, 0, UINT32_MAX); /* the digest */
  if (!reader->failed) read_values(reader, tape);
  if (reader->failed) return;
  tape->givens = next_count(reader, 0, 1);
  tape->given = next_words(reader, tape->givens);
  tape->blocks = next_count(reader, 1, 3);
  if (reader->failed) return;
  tape->block = zeros(reader, tape->blocks, sizeof *tape->block);
  reader->owners = zeros(reader, tape->blocks, sizeof *reader->owners);
  for (int i = 0; !reader->failed && i < tape->blocks; i++) read_block(reader, tape, i);
  for (int i = 0; !reader->failed && i < tape->blocks; i++) check_bodies(reader, tape, &tape->block[i]);
  for (int i = 0; !reader->failed && i < tape->givens; i++) {
    if (tape->given[i] < 0 || tape->given[i] >= tape->block[0].inputs) reader->failed = 1;
  }
  if (reader->word != reader->end) reader->failed = 1;
}

Tape *read_tape(const Operators *operators, const char *bytes, size_t size) {
  enum { HEAD = 2 * sizeof(int64_t) };
  Tape *tape = calloc(1, sizeof *tape);
  if (!tape) return NULL;
  tape->operators = operators;
  tape->words = malloc(size + sizeof(int64_t));
  if (!tape->words) return free(tape), NULL;
  memcpy(tape->words, bytes, size);
  Reader reader = {tape->words, tape->words + size / sizeof(int64_t), 0, tape, NULL, NULL};
  reader.failed = size < HEAD || size % sizeof(int64_t) ||
                  tape->words[1] != digest_of((const unsigned char *)bytes + HEAD, size - HEAD);
  if (!reader.failed) read_all(&reader, tape);
  free(reader.definitions);
  free(reader.owners);
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
