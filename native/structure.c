/* Operators that move data: shapes, slices, joins. */
#include <string.h>

#include "planners.h"

int64_t axis_of(Plan *plan, int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) refuse(plan, "an axis is out of range");
  return axis;
}

int64_t times(Plan *plan, int64_t a, int64_t b) {
  const int64_t most = (int64_t)1 << 31;
  if (a < 0 || b < 0 || a > most || b > most) refuse(plan, "a size is out of range");
  return a * b;
}

int64_t new_axis(Plan *plan, int64_t axis, int rank, char *is_listed) {
  axis = axis_of(plan, axis, rank);
  if (is_listed[axis]) refuse(plan, "an axis is listed twice");
  is_listed[axis] = 1;
  return axis;
}

int read_axes(Plan *plan, const Instruction *instruction, int i, int rank, char *is_listed) {
  int64_t axes[MOST_AXES];
  memset(is_listed, 0, MOST_AXES);
  int count = known_integers(plan, instruction->in[i], axes, MOST_AXES);
  for (int k = 0; k < count; k++) is_listed[axis_of(plan, axes[k], rank)] = 1;
  return count;
}

void plan_identity(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  set_shape(plan, instruction->out[0], given.rank, given.shape);
  shares(plan, instruction->out[0], instruction->in[0], 0);
}

void plan_shape(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t start = instruction->attribute[0], end = instruction->attribute[1], rank = given.rank;
  start = start < 0 ? start + rank : start, end = end < 0 ? end + rank : end;
  start = start < 0 ? 0 : start > rank ? rank : start;
  end = end < start ? start : end > rank ? rank : end;
  int64_t count = end - start;
  set_shape(plan, instruction->out[0], 1, &count);
  memcpy(fix(plan, instruction->out[0]), given.shape + start, (size_t)count * sizeof(int64_t));
}

void plan_size(Plan *plan, const Instruction *instruction) {
  int64_t size = operand(plan, instruction, 0)->size;
  set_shape(plan, instruction->out[0], 0, NULL);
  *(int64_t *)fix(plan, instruction->out[0]) = size;
}

void plan_reshape(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t shape[MOST_AXES], rest = 1;
  int rank = known_integers(plan, instruction->in[1], shape, MOST_AXES), free_axis = -1;
  for (int axis = 0; axis < rank; axis++) {
    if (shape[axis] == 0 && !instruction->attribute[0]) {
      if (axis >= given.rank) refuse(plan, "sizes of a Reshape do not fit");
      shape[axis] = given.shape[axis];
    }
    if (shape[axis] == -1) free_axis = axis;
    else rest = times(plan, rest, shape[axis]);
  }
  if (free_axis >= 0) {
    if (rest < 1 || given.size % rest) refuse(plan, "sizes of a Reshape do not fit");
    shape[free_axis] = given.size / rest;
  }
  set_shape(plan, instruction->out[0], rank, shape);
  if (slot(plan, instruction->out[0])->array.size != given.size) {
    refuse(plan, "sizes of a Reshape do not fit");
  }
  shares(plan, instruction->out[0], instruction->in[0], 0);
}

void plan_squeeze(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  char is_dropped[MOST_AXES] = {0};
  int64_t shape[MOST_AXES];
  int rank = 0, listed = has_operand(instruction, 1);
  if (listed) read_axes(plan, instruction, 1, given.rank, is_dropped);
  for (int axis = 0; axis < given.rank; axis++) {
    if (listed && is_dropped[axis] && given.shape[axis] != 1) refuse(plan, "a squeezed axis is long");
    if (listed ? !is_dropped[axis] : given.shape[axis] != 1) shape[rank++] = given.shape[axis];
  }
  set_shape(plan, instruction->out[0], rank, shape);
  shares(plan, instruction->out[0], instruction->in[0], 0);
}

void plan_unsqueeze(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t shape[MOST_AXES], axes[MOST_AXES];
  char is_new[MOST_AXES];
  int rank = given.rank + known_integers(plan, instruction->in[1], axes, MOST_AXES);
  if (rank > MOST_AXES) refuse(plan, "too many axes");
  read_axes(plan, instruction, 1, rank, is_new);
  for (int axis = 0, from = 0; axis < rank; axis++) {
    if (!is_new[axis] && from >= given.rank) refuse(plan, "new axes are not different");
    shape[axis] = is_new[axis] ? 1 : given.shape[from++];
  }
  set_shape(plan, instruction->out[0], rank, shape);
  shares(plan, instruction->out[0], instruction->in[0], 0);
}

void plan_flatten(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t axis = instruction->attribute[0];
  axis = axis < 0 ? axis + given.rank : axis;
  if (axis < 0 || axis > given.rank) refuse(plan, "an axis is out of range");
  int64_t shape[2] = {product(given.shape, 0, axis), product(given.shape, axis, given.rank)};
  set_shape(plan, instruction->out[0], 2, shape);
  shares(plan, instruction->out[0], instruction->in[0], 0);
}

/* Copy an operand to the result by the strides of each axis of the result, or share its memory. */
static void place_strided(Plan *plan, const Instruction *instruction, const int64_t *strides,
                          int64_t offset) {
  int64_t plain[MOST_AXES];
  Array result = slot(plan, instruction->out[0])->array;
  strides_of(&result, plain);
  int is_plain = 1;
  for (int axis = 0; axis < result.rank; axis++) {
    if (result.shape[axis] > 1 && strides[axis] != plain[axis]) is_plain = 0;
  }
  if (is_plain || !result.size) {
    shares(plan, instruction->out[0], instruction->in[0], result.size ? offset : 0);
    return;
  }
  Layout layout = layout_of(result.rank, result.shape, strides);
  copies_layout(plan, instruction->out[0], 0, instruction->in[0], offset, &layout, result.size);
}

void plan_expand(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t wanted[MOST_AXES], shape[MOST_AXES], strides[MOST_AXES], own[MOST_AXES];
  int count = known_integers(plan, instruction->in[1], wanted, MOST_AXES);
  int rank = count > given.rank ? count : given.rank;
  strides_of(&given, own);
  for (int axis = 0; axis < rank; axis++) {
    int from = axis - rank + given.rank, to = axis - rank + count;
    int64_t present = from < 0 ? 1 : given.shape[from], size = to < 0 ? 1 : wanted[to];
    if (present != 1 && size != 1 && present != size) refuse(plan, "sizes differ");
    shape[axis] = present == 1 ? size : present;
    strides[axis] = present == 1 ? 0 : own[from];
  }
  set_shape(plan, instruction->out[0], rank, shape);
  place_strided(plan, instruction, strides, 0);
}

void plan_transpose(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t shape[MOST_AXES], strides[MOST_AXES], own[MOST_AXES];
  char is_listed[MOST_AXES] = {0};
  if (instruction->attributes != given.rank) refuse(plan, "axes of a Transpose do not fit");
  strides_of(&given, own);
  for (int axis = 0; axis < given.rank; axis++) {
    int64_t from = new_axis(plan, instruction->attribute[axis], given.rank, is_listed);
    shape[axis] = given.shape[from];
    strides[axis] = own[from];
  }
  set_shape(plan, instruction->out[0], given.rank, shape);
  place_strided(plan, instruction, strides, 0);
}

void plan_slice(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t starts[MOST_AXES], ends[MOST_AXES], axes[MOST_AXES], steps[MOST_AXES];
  int64_t strides[MOST_AXES], shape[MOST_AXES], offset = 0;
  int count = known_integers(plan, instruction->in[1], starts, MOST_AXES);
  int sizes[3] = {known_integers(plan, instruction->in[2], ends, MOST_AXES), count, count};
  if (has_operand(instruction, 3)) sizes[1] = known_integers(plan, instruction->in[3], axes, MOST_AXES);
  else for (int k = 0; k < count; k++) axes[k] = k;
  if (has_operand(instruction, 4)) sizes[2] = known_integers(plan, instruction->in[4], steps, MOST_AXES);
  else for (int k = 0; k < count; k++) steps[k] = 1;
  if (sizes[0] != count || sizes[1] != count || sizes[2] != count) refuse(plan, "a Slice is wrong");
  char is_listed[MOST_AXES] = {0};
  strides_of(&given, strides);
  memcpy(shape, given.shape, sizeof shape);
  for (int k = 0; k < count; k++) {
    int64_t axis = new_axis(plan, axes[k], given.rank, is_listed), size = given.shape[axis];
    int64_t start = starts[k], end = ends[k], step = steps[k];
    if (!step) refuse(plan, "a Slice is wrong");
    /* Steps beyond the array are all alike. */
    step = between(step, -size - 1, size + 1);
    start = start < 0 ? start + size : start;
    end = end < 0 ? end + size : end;
    start = step > 0 ? between(start, 0, size) : between(start, 0, size - 1);
    end = step > 0 ? between(end, 0, size) : between(end, -1, size - 1);
    int64_t length = step > 0 ? (end - start + step - 1) / step : (start - end - step - 1) / -step;
    shape[axis] = length > 0 && size ? length : 0;
    if (shape[axis]) offset += start * strides[axis];
    strides[axis] *= step;
  }
  set_shape(plan, instruction->out[0], given.rank, shape);
  place_strided(plan, instruction, strides, offset);
}

static const char *run_bounds(Step *step) {
  int64_t size = *(const int64_t *)step->in[0], start = *(const int64_t *)step->in[1];
  int64_t end = *(const int64_t *)step->in[2], *first = (int64_t *)step->out;
  size = size < 0 ? 0 : size;
  start = between(start < 0 ? start + size : start, 0, size);
  end = between(end < 0 ? end + size : end, 0, size);
  *first = start;
  *(int64_t *)step->extra = end > start ? end - start : 0;
  return NULL;
}

/* The first row of a slice and the number of its rows, from the size of the axis, start and end */
void plan_bounds(Plan *plan, const Instruction *instruction) {
  for (int i = 0; i < 3; i++) require_one(plan, instruction->in[i]);
  for (int i = 0; i < 2; i++) set_shape(plan, instruction->out[i], 0, NULL);
  Step *step = emit(plan, run_bounds);
  for (int i = 0; i < 3; i++) reads(plan, &step->in[i], instruction->in[i], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  writes(plan, (char **)&step->extra, instruction->out[1], 0);
}

/* n: elements, bytes of one, rows to choose from, rows in the window, bytes of a row */
static const char *run_window(Step *step) {
  const int64_t *n = step->n;
  int64_t start = *(const int64_t *)step->in[1];
  if (start < 0 || start > n[2] - n[3]) return "a Slice ends beyond the array";
  copy_layout(step->out, step->in[0] + start * n[4], step->extra, (size_t)n[1], 0, n[0]);
  return NULL;
}

/* A slice of known length that starts where a value says; attribute: axis */
void plan_window(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t axis = axis_of(plan, instruction->attribute[0], given.rank);
  int64_t length = known_integer(plan, instruction->in[2]);
  int64_t rows = given.shape[axis], strides[MOST_AXES];
  strides_of(&given, strides);
  int64_t stride = strides[axis];
  given.shape[axis] = length;
  set_shape(plan, instruction->out[0], given.rank, given.shape);
  require_one(plan, instruction->in[1]);
  if (slot(plan, instruction->in[1])->known) {
    int64_t start = known_integer(plan, instruction->in[1]);
    if (start < 0 || start > rows - length) refuse(plan, "a Slice ends beyond the array");
    place_strided(plan, instruction, strides, start * stride);
    return;
  }
  Step *step = emit(plan, run_window);
  Layout *layout = memory(plan, sizeof *layout);
  *layout = layout_of(given.rank, given.shape, strides);
  step->extra = layout;
  reads(plan, &step->in[0], instruction->in[0], 0);
  reads(plan, &step->in[1], instruction->in[1], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  int64_t n[] = {slot(plan, instruction->out[0])->array.size, bytes_of_one(plan, instruction->in[0]),
                 rows, length, stride};
  memcpy(step->n, n, sizeof n);
}

typedef struct {
  const char *in;
  int64_t bytes;
} Part;

static const char *run_concat(Step *step) {
  Part *parts = step->extra;
  char *out = step->out;
  for (int64_t outer = 0; outer < step->n[0]; outer++) {
    for (int64_t i = 0; i < step->n[1]; i++) {
      int64_t bytes = parts[i].bytes;
      const char *in = parts[i].in + outer * bytes;
      if (bytes == 8) memcpy(out, in, 8);
      else memcpy(out, in, (size_t)bytes);
      out += bytes;
    }
  }
  return NULL;
}

void plan_concat(Plan *plan, const Instruction *instruction) {
  Array result = *operand(plan, instruction, 0);
  int64_t axis = axis_of(plan, instruction->attribute[0], result.rank), length = 0;
  for (int i = 0; i < instruction->inputs; i++) {
    Array given = *operand(plan, instruction, i);
    length += given.shape[axis];
    given.shape[axis] = result.shape[axis];
    if (!same_shape(&given, &result)) refuse(plan, "sizes of a Concat differ");
  }
  result.shape[axis] = length;
  set_shape(plan, instruction->out[0], result.rank, result.shape);
  int64_t row = product(result.shape, axis + 1, result.rank) * bytes_of_one(plan, instruction->in[0]);
  Step *step = emit(plan, run_concat);
  Part *parts = memory(plan, (size_t)instruction->inputs * sizeof *parts);
  int count = 0;
  for (int i = 0; i < instruction->inputs; i++) {
    int64_t bytes = operand(plan, instruction, i)->shape[axis] * row;
    if (!bytes) continue;
    parts[count].bytes = bytes;
    reads(plan, &parts[count++].in, instruction->in[i], 0);
  }
  writes(plan, &step->out, instruction->out[0], 0);
  step->n[0] = product(result.shape, 0, axis);
  step->n[1] = count;
  step->extra = parts;
}

void plan_split(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t axis = axis_of(plan, instruction->attribute[0], given.rank), size = given.shape[axis];
  int64_t lengths[64], strides[MOST_AXES], start = 0;
  int count = instruction->outputs;
  if (count > 64) refuse(plan, "a Split has too many parts");
  if (has_operand(instruction, 1)) {
    if (known_integers(plan, instruction->in[1], lengths, 64) != count) refuse(plan, "a Split is wrong");
  } else {
    int64_t length = (size + count - 1) / count;
    for (int i = 0; i < count; i++) lengths[i] = between(size - i * length, 0, length);
  }
  strides_of(&given, strides);
  for (int i = 0; i < count; i++) {
    if (lengths[i] < 0 || lengths[i] > size - start) refuse(plan, "a Split is wrong");
    given.shape[axis] = lengths[i];
    set_shape(plan, instruction->out[i], given.rank, given.shape);
    Instruction part = *instruction;
    part.out = &instruction->out[i];
    place_strided(plan, &part, strides, start * strides[axis]);
    start += lengths[i];
  }
  if (start != size) refuse(plan, "a Split is wrong");
}

static const char *run_fill(Step *step) {
  Layout layout = {0};
  copy_layout(step->out, step->in[0], &layout, (size_t)step->n[1], 0, step->n[0]);
  return NULL;
}

static void fills(Plan *plan, int64_t out, int64_t number) {
  require_one(plan, number);
  Step *step = emit(plan, run_fill);
  reads(plan, &step->in[0], number, 0);
  writes(plan, &step->out, out, 0);
  step->n[0] = slot(plan, out)->array.size;
  step->n[1] = bytes_of_one(plan, out);
}

void plan_constant_of_shape(Plan *plan, const Instruction *instruction) {
  int64_t shape[MOST_AXES];
  int rank = known_integers(plan, instruction->in[0], shape, MOST_AXES);
  set_shape(plan, instruction->out[0], rank, shape);
  fills(plan, instruction->out[0], instruction->in[1]);
}

static const char *run_range(Step *step) {
  int64_t *out = (int64_t *)step->out;
  for (int64_t i = 0; i < step->n[0]; i++) out[i] = step->n[1] + i * step->n[2];
  return NULL;
}

void plan_range(Plan *plan, const Instruction *instruction) {
  int64_t start = known_integer(plan, instruction->in[0]);
  int64_t limit = known_integer(plan, instruction->in[1]);
  int64_t delta = known_integer(plan, instruction->in[2]);
  if (!delta) refuse(plan, "a Range has no step");
  const int64_t most = (int64_t)1 << 40;
  if (between(start, -most, most) != start || between(limit, -most, most) != limit ||
      between(delta, -most, most) != delta) {
    refuse(plan, "a Range is too far from zero");
  }
  int64_t count = delta > 0 ? (limit - start + delta - 1) / delta : (start - limit - delta - 1) / -delta;
  count = count > 0 ? count : 0;
  set_shape(plan, instruction->out[0], 1, &count);
  Step *step = emit(plan, run_range);
  writes(plan, &step->out, instruction->out[0], 0);
  step->n[0] = count, step->n[1] = start, step->n[2] = delta;
}

/* A part of an array that is copied into another one. */
typedef struct {
  int rank;
  int64_t shape[MOST_AXES], from[MOST_AXES], to[MOST_AXES]; /* strides in bytes */
  int64_t size, filled, bytes;
} Window;

static const char *run_pad(Step *step) {
  const Window *window = step->extra;
  Layout number = {0};
  copy_layout(step->out, step->in[1], &number, (size_t)window->bytes, 0, window->filled);
  int last = window->rank - 1;
  int64_t at[MOST_AXES] = {0}, row = window->rank ? window->shape[last] : 1;
  const char *in = step->in[0];
  char *out = step->out + step->n[0];
  for (int64_t done = 0; done < window->size; done += row) {
    copy_bytes(out, in, row * window->bytes);
    for (int axis = last - 1; axis >= 0; axis--) {
      in += window->from[axis], out += window->to[axis];
      if (++at[axis] < window->shape[axis]) break;
      in -= window->shape[axis] * window->from[axis], out -= window->shape[axis] * window->to[axis];
      at[axis] = 0;
    }
  }
  return NULL;
}

/* Elements that lie at the sums of an offset of each axis. */
typedef struct {
  int rank;
  int64_t shape[MOST_AXES], size, bytes;
  int64_t *offset[MOST_AXES];
} Offsets;

static const char *run_offsets(Step *step) {
  const Offsets *offsets = step->extra;
  int last = offsets->rank - 1;
  int64_t at[MOST_AXES] = {0}, row = offsets->shape[last];
  for (int64_t done = 0; done < offsets->size; done += row) {
    const char *in = step->in[0];
    for (int axis = 0; axis < last; axis++) in += offsets->offset[axis][at[axis]];
    copy_elements(step->out + done * offsets->bytes, in, offsets->offset[last], row, offsets->bytes);
    for (int axis = last - 1; axis >= 0 && ++at[axis] == offsets->shape[axis]; axis--) at[axis] = 0;
  }
  return NULL;
}

enum { BY_NUMBER, BY_EDGE, BY_REFLECTION, BY_PERIOD };

/* Return the index of n whose element stands at an index beyond them. */
static int64_t index_within(int64_t i, int64_t n, int64_t mode) {
  if (mode == BY_EDGE) return between(i, 0, n - 1);
  if (mode == BY_PERIOD) return (i + n) % n;
  return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i;
}

static void pads_by_elements(Plan *plan, const Instruction *instruction, const int64_t *before,
                             const Array *result, int64_t mode) {
  const Array given = *operand(plan, instruction, 0);
  int64_t strides[MOST_AXES];
  Offsets *offsets = memory(plan, sizeof *offsets);
  offsets->rank = given.rank;
  offsets->size = result->size;
  offsets->bytes = bytes_of_one(plan, instruction->in[0]);
  strides_of(&given, strides);
  for (int axis = 0; axis < given.rank; axis++) {
    int64_t n = given.shape[axis], count = result->shape[axis];
    int64_t most = mode == BY_EDGE ? INT64_MAX : mode == BY_PERIOD ? n : n - 1, after = count - n - before[axis];
    if (before[axis] < 0 || after < 0 || before[axis] > most || after > most || (!n && count)) {
      refuse(plan, "a Pad by elements that there are not");
    }
    offsets->shape[axis] = count;
    offsets->offset[axis] = memory(plan, (size_t)count * sizeof **offsets->offset);
    for (int64_t i = 0; i < count; i++) {
      offsets->offset[axis][i] = index_within(i - before[axis], n, mode) * strides[axis];
    }
  }
  Step *step = emit(plan, run_offsets);
  step->extra = offsets;
  reads(plan, &step->in[0], instruction->in[0], 0);
  writes(plan, &step->out, instruction->out[0], 0);
}

/* Pad by a number, where negative sizes cut, or by elements; attributes: the mode. */
void plan_pad(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0), result = given;
  int64_t pads[2 * MOST_AXES], axes[MOST_AXES], before[MOST_AXES] = {0};
  int count = given.rank;
  for (int k = 0; k < count; k++) axes[k] = k;
  if (has_operand(instruction, 3)) count = known_integers(plan, instruction->in[3], axes, MOST_AXES);
  if (known_integers(plan, instruction->in[1], pads, 2 * MOST_AXES) != 2 * count) refuse(plan, "a Pad is wrong");
  char is_listed[MOST_AXES] = {0};
  Window *window = memory(plan, sizeof *window);
  window->rank = given.rank;
  memcpy(window->shape, given.shape, sizeof given.shape);
  for (int k = 0; k < count; k++) {
    int64_t axis = new_axis(plan, axes[k], given.rank, is_listed);
    int64_t first = pads[k], last = pads[k + count];
    const int64_t most = (int64_t)1 << 40;
    if (between(first, -most, most) != first || between(last, -most, most) != last) {
      refuse(plan, "a Pad is too large");
    }
    before[axis] = first;
    result.shape[axis] += first + last;
    window->shape[axis] += between(first, -most, 0) + between(last, -most, 0);
    if (window->shape[axis] < 0) refuse(plan, "a Pad cuts more than there is");
  }
  int64_t mode = instruction->attributes ? instruction->attribute[0] : BY_NUMBER;
  if (given.rank && mode != BY_NUMBER) {
    set_shape(plan, instruction->out[0], result.rank, result.shape);
    result.size = slot(plan, instruction->out[0])->array.size;
    pads_by_elements(plan, instruction, before, &result, mode);
    return;
  }
  require_one(plan, instruction->in[2]);
  set_shape(plan, instruction->out[0], result.rank, result.shape);
  count_elements(&result);
  strides_of(&given, window->from);
  strides_of(&result, window->to);
  window->size = product(window->shape, 0, window->rank);
  window->filled = result.size;
  window->bytes = bytes_of_one(plan, instruction->in[0]);
  Step *step = emit(plan, run_pad);
  step->extra = window;
  int64_t skipped = 0;
  for (int axis = 0; axis < given.rank; axis++) {
    if (before[axis] < 0) skipped -= before[axis] * window->from[axis];
    else step->n[0] += before[axis] * window->to[axis];
  }
  reads(plan, &step->in[0], instruction->in[0], window->size ? skipped : 0);
  reads(plan, &step->in[1], instruction->in[2], 0);
  writes(plan, &step->out, instruction->out[0], 0);
}

static const char *run_trilu(Step *step) {
  int64_t rows = step->n[0], columns = step->n[1], bytes = step->n[2], k = step->n[3];
  char *out = step->out;
  const char *in = step->in[0];
  for (int64_t i = 0; i < rows * step->n[5]; i++) {
    int64_t cut = between(i % rows + k + (step->n[4] ? 0 : 1), 0, columns);
    int64_t from = step->n[4] ? cut : 0, to = step->n[4] ? columns : cut;
    memset(out, 0, (size_t)(columns * bytes));
    copy_bytes(out + from * bytes, in + from * bytes, (to - from) * bytes);
    out += columns * bytes;
    in += columns * bytes;
  }
  return NULL;
}

void plan_trilu(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t k = 0;
  if (given.rank < 2) refuse(plan, "a Trilu of a vector");
  if (has_operand(instruction, 1)) k = known_integer(plan, instruction->in[1]);
  set_shape(plan, instruction->out[0], given.rank, given.shape);
  Step *step = emit(plan, run_trilu);
  reads(plan, &step->in[0], instruction->in[0], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  step->n[0] = given.shape[given.rank - 2];
  step->n[1] = given.shape[given.rank - 1];
  step->n[2] = bytes_of_one(plan, instruction->in[0]);
  step->n[3] = between(k, -(1 << 30), 1 << 30);
  step->n[4] = instruction->attribute[0];
  step->n[5] = step->n[1] && step->n[0] ? given.size / step->n[0] / step->n[1] : 0;
}

/* Copy by a layout in which each repeated axis is two, the first of them without a stride. */
void plan_tile(Plan *plan, const Instruction *instruction) {
  Array given = *operand(plan, instruction, 0);
  int64_t repeats[MOST_AXES], own[MOST_AXES], shape[MOST_AXES];
  int64_t sizes[2 * MOST_AXES], strides[2 * MOST_AXES];
  if (known_integers(plan, instruction->in[1], repeats, MOST_AXES) != given.rank || given.rank > 4) {
    refuse(plan, "a Tile is wrong");
  }
  strides_of(&given, own);
  for (int axis = 0; axis < given.rank; axis++) {
    shape[axis] = times(plan, given.shape[axis], repeats[axis]);
    sizes[2 * axis] = repeats[axis], sizes[2 * axis + 1] = given.shape[axis];
    strides[2 * axis] = 0, strides[2 * axis + 1] = own[axis];
  }
  set_shape(plan, instruction->out[0], given.rank, shape);
  int64_t size = slot(plan, instruction->out[0])->array.size;
  if (size == given.size) {
    shares(plan, instruction->out[0], instruction->in[0], 0);
    return;
  }
  Layout layout = layout_of(2 * given.rank, sizes, strides);
  copies_layout(plan, instruction->out[0], 0, instruction->in[0], 0, &layout, size);
}
