/* Operators that take and put elements by indices. */
#include <stdlib.h>

#include "chains.h"
#include "planners.h"

static const char OUT_OF_RANGE[] = "indices element out of data bounds";

enum { PLACES = 256 };

/* Parts of data that indices name, found block by block. */
typedef struct Places Places;

/* Find the offsets of some parts, or return 0 if an index is out of range. */
typedef int (*Find)(const Places *places, const char *indices, int64_t start, int64_t count,
                    int64_t *offset);

/* Put parts at places, or add them to the elements there. */
typedef void (*Put)(char *to, const int64_t *offset, const char *from, int64_t count,
                    int64_t elements);

struct Places {
  Find find;
  Put put;
  int narrow; /* whether indices are int32 */
  int64_t count, bytes, elements; /* parts, and the bytes and elements of each */
  int64_t depth, size[MOST_AXES], stride[MOST_AXES]; /* of the axes that indices name */
  int64_t rows_of_batch, batch_bytes;
  int64_t *offset; /* of all parts, where the indices are known when the plan is made */
  Layout layout; /* of the other axes, where each element has an index */
};

#define RESOLVE(T)                                          \
  {                                                         \
    const T *index = (const T *)indices + start;            \
    for (int64_t i = 0; i < count; i++) {                   \
      int64_t at = index[i];                                \
      at += at < 0 ? size : 0;                              \
      is_wrong |= (uint64_t)at >= (uint64_t)size;           \
      offset[i] = (int64_t)((uint64_t)at * (uint64_t)stride); \
    }                                                       \
  }

/* Find offsets along one axis. */
static int resolve(const Places *places, const char *indices, int64_t start, int64_t count,
                   int64_t *offset) {
  int64_t size = places->size[0], stride = places->stride[0];
  int is_wrong = 0;
  if (places->narrow) RESOLVE(int32_t)
  else RESOLVE(int64_t)
  return !is_wrong;
}

static int find_parts(const Places *places, const char *indices, int64_t start, int64_t count,
                      int64_t *offset) {
  if (places->depth == 1) {
    if (!resolve(places, indices, start, count, offset)) return 0;
  } else {
    const int64_t *index = (const int64_t *)indices + start * places->depth;
    for (int64_t i = 0; i < count; i++) {
      offset[i] = 0;
      for (int64_t k = 0; k < places->depth; k++) {
        int64_t size = places->size[k], at = *index++;
        at += at < 0 ? size : 0;
        if (at < 0 || at >= size) return 0;
        offset[i] += at * places->stride[k];
      }
    }
  }
  if (places->rows_of_batch < places->count) {
    for (int64_t i = 0; i < count; i++) {
      offset[i] += (start + i) / places->rows_of_batch * places->batch_bytes;
    }
  }
  return 1;
}

static int find_elements(const Places *places, const char *indices, int64_t start, int64_t count,
                         int64_t *offset) {
  const Layout *layout = &places->layout;
  int last = layout->rank - 1;
  if (!resolve(places, indices, start, count, offset)) return 0;
  if (last < 0) return 1;
  int64_t at[MOST_AXES], base = 0, step = layout->stride[last];
  for (int axis = last; axis >= 0; axis--) {
    at[axis] = start % layout->shape[axis];
    start /= layout->shape[axis];
    base += at[axis] * layout->stride[axis];
  }
  while (count > 0) {
    int64_t row = between(layout->shape[last] - at[last], 0, count);
    for (int64_t i = 0; i < row; i++) offset[i] += base + i * step;
    offset += row;
    count -= row;
    base -= at[last] * step;
    at[last] = 0;
    for (int axis = last - 1; axis >= 0; axis--) {
      base += layout->stride[axis];
      if (++at[axis] < layout->shape[axis]) break;
      base -= layout->shape[axis] * layout->stride[axis];
      at[axis] = 0;
    }
  }
  return 1;
}

static Places *new_places(Plan *plan, Find find, const Array *data, const Array *indices) {
  if (indices->dtype != INT32 && indices->dtype != INT64) refuse(plan, "indices of another type");
  Places *made = memory(plan, sizeof *made);
  made->find = find;
  made->narrow = indices->dtype == INT32;
  made->count = indices->size;
  made->bytes = (int64_t)bytes_of_element(data->dtype);
  made->elements = made->depth = made->rows_of_batch = 1;
  return made;
}

/* Places along one axis, whose indices serve all rows before it. */
static Places *rows_of(Plan *plan, const Array *data, const Array *indices, int64_t axis) {
  Places *made = new_places(plan, find_parts, data, indices);
  made->rows_of_batch = made->count;
  made->bytes *= product(data->shape, axis + 1, data->rank);
  made->size[0] = data->shape[axis];
  made->stride[0] = made->bytes;
  return made;
}

/* Places of single elements, for arrays of indices that may be smaller than the data. */
static Places *elements_of(Plan *plan, const Array *data, const Array *indices, int64_t axis) {
  Places *made = new_places(plan, find_elements, data, indices);
  int64_t strides[MOST_AXES];
  if (data->rank != indices->rank) refuse(plan, "data and indices differ in rank");
  strides_of(data, strides);
  made->size[0] = data->shape[axis];
  made->stride[0] = strides[axis];
  for (int i = 0; i < data->rank; i++) {
    if (i != axis && indices->shape[i] > data->shape[i]) refuse(plan, "more indices than elements");
  }
  strides[axis] = 0;
  made->layout = layout_of(data->rank, indices->shape, strides);
  return made;
}

/* Places that rows of indices name. */
static Places *parts_of(Plan *plan, const Array *data, const Array *indices, int batch_axes) {
  Places *made = new_places(plan, find_parts, data, indices);
  int64_t strides[MOST_AXES];
  if (!indices->rank || indices->rank - 1 < batch_axes) refuse(plan, "indices have too few axes");
  strides_of(data, strides);
  made->depth = indices->shape[indices->rank - 1];
  if (batch_axes + made->depth > data->rank) refuse(plan, "indices are too long");
  if (made->narrow && made->depth != 1) refuse(plan, "indices of another type");
  made->count = product(indices->shape, 0, indices->rank - 1);
  made->rows_of_batch = product(indices->shape, batch_axes, indices->rank - 1);
  for (int axis = 0; axis < batch_axes; axis++) {
    if (data->shape[axis] != indices->shape[axis]) refuse(plan, "batches differ in size");
  }
  for (int64_t k = 0; k < made->depth; k++) {
    made->size[k] = data->shape[batch_axes + k];
    made->stride[k] = strides[batch_axes + k];
  }
  made->elements = product(data->shape, batch_axes + made->depth, data->rank);
  made->batch_bytes = product(data->shape, batch_axes, data->rank) * made->bytes;
  made->bytes *= made->elements;
  return made;
}

/* Find all offsets at once where the indices are known. */
static void find_known(Plan *plan, const Instruction *instruction, Places *places) {
  const Slot *indices = slot(plan, instruction->in[1]);
  if (!indices->known) return;
  const char *data = (const char *)slot(plan, indices->root)->array.data + indices->offset;
  places->offset = memory(plan, (size_t)places->count * sizeof *places->offset);
  for (int64_t start = 0; start < places->count; start += PLACES) {
    int64_t count = between(places->count - start, 0, PLACES);
    if (!places->find(places, data, start, count, places->offset + start)) {
      refuse(plan, OUT_OF_RANGE);
    }
  }
}

/* n: number of arrays that the indices serve, bytes of each */
static const char *run_take(Step *step) {
  const Places *places = step->extra;
  int64_t found[PLACES], whole = places->count * places->bytes;
  for (int64_t start = 0; start < places->count; start += PLACES) {
    int64_t count = between(places->count - start, 0, PLACES);
    const int64_t *offset = places->offset ? places->offset + start : found;
    if (!places->offset && !places->find(places, step->in[1], start, count, found)) {
      return OUT_OF_RANGE;
    }
    for (int64_t outer = 0; outer < step->n[0]; outer++) {
      char *to = step->out + outer * whole + start * places->bytes;
      copy_elements(to, step->in[0] + outer * step->n[1], offset, count, places->bytes);
    }
  }
  return NULL;
}

static void takes(Plan *plan, const Instruction *instruction, Places *places, int64_t outer,
                  int64_t bytes) {
  find_known(plan, instruction, places);
  Step *step = emit(plan, run_take);
  step->extra = places;
  reads(plan, &step->in[0], instruction->in[0], 0);
  reads(plan, &step->in[1], instruction->in[1], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  step->n[0] = outer;
  step->n[1] = bytes;
}

/* Whether a Gather takes elements of a vector at known places. */
static int takes_elements(Plan *plan, const Instruction *instruction) {
  const Array *data = operand(plan, instruction, 0), *indices = operand(plan, instruction, 1);
  if (data->rank != 1 || !slot(plan, instruction->in[1])->known) return 0;
  return can_chain(data->dtype, indices->size);
}

static const int64_t *offsets_of(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  Places *places = rows_of(plan, &data, &indices, 0);
  set_shape(plan, instruction->out[0], indices.rank, indices.shape);
  find_known(plan, instruction, places);
  return places->offset;
}

const Member TAKES = {TAKEN, takes_elements, offsets_of, NULL};

void plan_gather(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  int64_t axis = axis_of(plan, instruction->attribute[0], data.rank), shape[2 * MOST_AXES];
  int rank = 0;
  Places *places = rows_of(plan, &data, &indices, axis);
  for (int i = 0; i < axis; i++) shape[rank++] = data.shape[i];
  for (int i = 0; i < indices.rank; i++) shape[rank++] = indices.shape[i];
  for (int i = (int)axis + 1; i < data.rank; i++) shape[rank++] = data.shape[i];
  set_shape(plan, instruction->out[0], rank, shape);
  int64_t outer = product(data.shape, 0, axis), size = data.shape[axis];
  if (outer == 1 && indices.size == 1 && slot(plan, instruction->in[1])->known) {
    int64_t index = known_integer(plan, instruction->in[1]);
    index = index < 0 ? index + size : index;
    if (index < 0 || index >= size) refuse(plan, OUT_OF_RANGE);
    shares(plan, instruction->out[0], instruction->in[0], index * places->bytes);
    return;
  }
  takes(plan, instruction, places, outer, size * places->bytes);
}

void plan_gather_elements(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  int64_t axis = axis_of(plan, instruction->attribute[0], data.rank);
  set_shape(plan, instruction->out[0], indices.rank, indices.shape);
  takes(plan, instruction, elements_of(plan, &data, &indices, axis), 1, 0);
}

void plan_gather_nd(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  int batch_axes = (int)between(instruction->attribute[0], 0, data.rank), rank = 0;
  int64_t shape[2 * MOST_AXES];
  Places *places = parts_of(plan, &data, &indices, batch_axes);
  for (int i = 0; i < indices.rank - 1; i++) shape[rank++] = indices.shape[i];
  for (int64_t i = batch_axes + places->depth; i < data.rank; i++) shape[rank++] = data.shape[i];
  set_shape(plan, instruction->out[0], rank, shape);
  takes(plan, instruction, places, 1, 0);
}

#define PUT(name, T, W)                                                                       \
  static void put_##name(char *to, const int64_t *offset, const char *from, int64_t count,    \
                         int64_t elements) {                                                  \
    const T *part = (const T *)from;                                                          \
    for (int64_t i = 0; i < count; i++, part += elements) {                                   \
      T *at = (T *)(to + offset[i]);                                                          \
      if (elements == 1) *at = *part;                                                         \
      else if (elements) memcpy(at, part, (size_t)elements * sizeof(T));                                    \
    }                                                                                         \
  }                                                                                           \
  static void add_##name(char *to, const int64_t *offset, const char *from, int64_t count,    \
                         int64_t elements) {                                                  \
    const T *part = (const T *)from;                                                          \
    for (int64_t i = 0; elements == 1 && i < count; i++) {                                    \
      T *at = (T *)(to + offset[i]);                                                          \
      *at = (T)((W)*at + (W)part[i]);                                                         \
    }                                                                                         \
    for (int64_t i = 0; elements > 1 && i < count; i++, part += elements) {                   \
      T *at = (T *)(to + offset[i]);                                                          \
      for (int64_t k = 0; k < elements; k++) at[k] = (T)((W)at[k] + (W)part[k]);              \
    }                                                                                         \
  }
PUT(f64, double, double)
PUT(f32, float, float)
PUT(i64, uint64_t, uint64_t)
PUT(i32, uint32_t, uint32_t)
PUT(u8, uint8_t, uint32_t)

static Put put_for(Plan *plan, int dtype, int64_t reduction) {
  if (reduction > 1 || (reduction && dtype == BOOL)) refuse(plan, "a reduction without kernel");
  switch (dtype) {
    case FLOAT64: return reduction ? add_f64 : put_f64;
    case FLOAT32: return reduction ? add_f32 : put_f32;
    case INT64: case UINT64: return reduction ? add_i64 : put_i64;
    case INT32: case UINT32: return reduction ? add_i32 : put_i32;
    default: return reduction ? add_u8 : put_u8;
  }
}

#ifndef __wasm__
/* Sums of the parts that known indices add to each element, in the order of the parts. An addition
 * waits for the one before it of its sum only, so that AT_ONCE sums take the time of one. They are
 * sorted by their numbers of parts, so that those at once have about as many. */
enum { AT_ONCE = 8, FEWEST_ADDED = 64 };

typedef struct {
  int64_t offset; /* of the element */
  int64_t first, count; /* of the positions of its parts */
} Sum;

typedef struct Sums {
  int64_t count;
  Sum *sum;
  int32_t *position; /* of the parts of all sums in the updates */
  void (*run)(char *to, const struct Sums *sums, const char *from);
} Sums;

#define ADD_SUMS(name, T)                                                                   \
  static void add_sums_##name(char *to, const Sums *sums, const char *from) {               \
    const T *part = (const T *)from;                                                        \
    int64_t k = 0;                                                                          \
    for (; k + AT_ONCE <= sums->count; k += AT_ONCE) {                                      \
      const Sum *sum = sums->sum + k;                                                       \
      const int32_t *at[AT_ONCE];                                                           \
      T total[AT_ONCE];                                                                     \
      for (int j = 0; j < AT_ONCE; j++) {                                                   \
        at[j] = sums->position + sum[j].first;                                              \
        total[j] = *(T *)(to + sum[j].offset);                                              \
      }                                                                                     \
      int64_t shared = sum[0].count;                                                        \
      for (int64_t i = 0; i < shared; i++) {                                                \
        for (int j = 0; j < AT_ONCE; j++) total[j] += part[at[j][i]];                       \
      }                                                                                     \
      for (int j = 0; j < AT_ONCE; j++) {                                                   \
        for (int64_t i = shared; i < sum[j].count; i++) total[j] += part[at[j][i]];         \
        *(T *)(to + sum[j].offset) = total[j];                                              \
      }                                                                                     \
    }                                                                                       \
    for (; k < sums->count; k++) {                                                          \
      const Sum sum = sums->sum[k];                                                         \
      T total = *(T *)(to + sum.offset);                                                    \
      for (int64_t i = 0; i < sum.count; i++) total += part[sums->position[sum.first + i]]; \
      *(T *)(to + sum.offset) = total;                                                      \
    }                                                                                       \
  }
ADD_SUMS(f64, double)
ADD_SUMS(f32, float)

static int fewer(const void *a, const void *b) {
  const Sum *x = a, *y = b;
  if (x->count != y->count) return x->count < y->count ? -1 : 1;
  return x->offset < y->offset ? -1 : 1;
}

static const char *run_sums(Step *step) {
  const Sums *sums = step->extra;
  sums->run(step->out, sums, step->in[2]);
  return NULL;
}

/* Sort known places of single elements by their sums; NULL for others, and for few. */
static Sums *sums_of(Plan *plan, const Places *places, const Array *data, int64_t reduction) {
  const int is_double = data->dtype == FLOAT64;
  if (reduction != 1 || !places->offset || places->elements != 1) return NULL;
  if (!is_double && data->dtype != FLOAT32) return NULL;
  if (places->count < FEWEST_ADDED || places->count < 2 * data->size) return NULL;
  /* Counts of parts, and then the place of the next position of each element. */
  int64_t *next = memory(plan, (size_t)(data->size + 1) * sizeof *next), count = 0;
  for (int64_t i = 0; i < places->count; i++) next[places->offset[i] / places->bytes]++;
  for (int64_t i = 0; i < data->size; i++) count += next[i] > 0;
  Sums *made = memory(plan, sizeof *made);
  made->run = is_double ? add_sums_f64 : add_sums_f32;
  made->sum = memory(plan, (size_t)count * sizeof *made->sum);
  made->position = memory(plan, (size_t)places->count * sizeof *made->position);
  int64_t behind = 0;
  for (int64_t i = 0; i < data->size; i++) {
    if (!next[i]) continue;
    made->sum[made->count++] = (Sum){i * places->bytes, behind, next[i]};
    behind += next[i];
    next[i] = behind - next[i];
  }
  for (int64_t i = 0; i < places->count; i++) {
    made->position[next[places->offset[i] / places->bytes]++] = (int32_t)i;
  }
  qsort(made->sum, (size_t)made->count, sizeof *made->sum, fewer);
  return made;
}
#endif

static const char *run_put(Step *step) {
  const Places *places = step->extra;
  int64_t found[PLACES];
  for (int64_t start = 0; start < places->count; start += PLACES) {
    int64_t count = between(places->count - start, 0, PLACES);
    const int64_t *offset = places->offset ? places->offset + start : found;
    if (!places->offset && !places->find(places, step->in[1], start, count, found)) {
      return OUT_OF_RANGE;
    }
    places->put(step->out, offset, step->in[2] + start * places->bytes, count, places->elements);
  }
  return NULL;
}

static void puts_at(Plan *plan, const Instruction *instruction, Places *places, int64_t reduction) {
  Array data = *operand(plan, instruction, 0);
  places->put = put_for(plan, data.dtype, reduction);
  find_known(plan, instruction, places);
  set_shape(plan, instruction->out[0], data.rank, data.shape);
  copies(plan, instruction->out[0], instruction->in[0]);
#ifndef __wasm__
  Sums *sums = sums_of(plan, places, &data, reduction);
  Step *step = emit(plan, sums ? run_sums : run_put);
  step->extra = sums ? (void *)sums : places;
#else
  Step *step = emit(plan, run_put);
  step->extra = places;
#endif
  reads(plan, &step->in[1], instruction->in[1], 0);
  reads(plan, &step->in[2], instruction->in[2], 0);
  writes(plan, &step->out, instruction->out[0], 0);
}

void plan_scatter_elements(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  int64_t axis = axis_of(plan, instruction->attribute[0], data.rank);
  if (!same_shape(&indices, operand(plan, instruction, 2))) refuse(plan, "indices and updates differ");
  Places *places = elements_of(plan, &data, &indices, axis);
  puts_at(plan, instruction, places, instruction->attribute[1]);
}

void plan_scatter_nd(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  Array updates = *operand(plan, instruction, 2), wanted = updates;
  Places *places = parts_of(plan, &data, &indices, 0);
  wanted.rank = 0;
  for (int i = 0; i < indices.rank - 1; i++) wanted.shape[wanted.rank++] = indices.shape[i];
  for (int64_t i = places->depth; i < data.rank && wanted.rank < MOST_AXES; i++) {
    wanted.shape[wanted.rank++] = data.shape[i];
  }
  if (!same_shape(&updates, &wanted)) refuse(plan, "updates have another shape");
  puts_at(plan, instruction, places, instruction->attribute[0]);
}
