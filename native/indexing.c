/* Operators that take and put elements by indices. */
#include "planners.h"

static const char OUT_OF_RANGE[] = "indices element out of data bounds";

/* Return an index from the start of an axis, -1 if it is out of range. */
static inline int64_t index_at(const char *indices, int64_t i, int is_int32, int64_t size) {
  int64_t index = is_int32 ? ((const int32_t *)indices)[i] : ((const int64_t *)indices)[i];
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

static int is_int32(Plan *plan, const Array *indices) {
  if (indices->dtype != INT32 && indices->dtype != INT64) refuse(plan, "indices of another type");
  return indices->dtype == INT32;
}

static inline void copy_bytes(char *out, const char *in, int64_t bytes) {
  if (bytes == 8) memcpy(out, in, 8);
  else memcpy(out, in, (size_t)bytes);
}

/* n: outer, axis, inner bytes, indices, int32 */
static const char *run_gather(Step *step) {
  const char *in = step->in[0];
  char *out = step->out;
  int64_t size = step->n[1], bytes = step->n[2], count = step->n[3];
  int narrow = (int)step->n[4];
  for (int64_t outer = 0; outer < step->n[0]; outer++, in += size * bytes) {
    for (int64_t i = 0; i < count; i++, out += bytes) {
      int64_t index = index_at(step->in[1], i, narrow, size);
      if (index < 0) return OUT_OF_RANGE;
      copy_bytes(out, in + index * bytes, bytes);
    }
  }
  return NULL;
}

void plan_gather(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  int64_t axis = axis_of(plan, instruction->attribute[0], data.rank), shape[2 * MOST_AXES];
  int rank = 0, narrow = is_int32(plan, &indices);
  for (int i = 0; i < axis; i++) shape[rank++] = data.shape[i];
  for (int i = 0; i < indices.rank; i++) shape[rank++] = indices.shape[i];
  for (int i = (int)axis + 1; i < data.rank; i++) shape[rank++] = data.shape[i];
  set_shape(plan, instruction->out[0], rank, shape);
  int64_t outer = product(data.shape, 0, axis), size = data.shape[axis];
  int64_t bytes = product(data.shape, axis + 1, data.rank) * bytes_of_one(plan, instruction->in[0]);
  if (outer == 1 && indices.size == 1 && slot(plan, instruction->in[1])->known) {
    int64_t index;
    known_integers(plan, instruction->in[1], &index, 1);
    index = index < 0 ? index + size : index;
    if (index < 0 || index >= size) refuse(plan, OUT_OF_RANGE);
    shares(plan, instruction->out[0], instruction->in[0], index * bytes);
    return;
  }
  Step *step = emit(plan, run_gather);
  reads(plan, &step->in[0], instruction->in[0], 0);
  reads(plan, &step->in[1], instruction->in[1], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  int64_t n[] = {outer, size, bytes, indices.size, narrow};
  memcpy(step->n, n, sizeof n);
}

/* Positions of elements along all axes but one, for arrays of indices smaller than the data. */
typedef struct {
  int rank, axis;
  int64_t shape[MOST_AXES], stride[MOST_AXES], size;
} Elements;

static Elements *elements_of(Plan *plan, const Array *data, const Array *indices, int64_t axis) {
  Elements *made = memory(plan, sizeof *made);
  if (data->rank != indices->rank) refuse(plan, "data and indices differ in rank");
  made->rank = data->rank;
  made->axis = (int)axis;
  made->size = data->shape[axis];
  strides_of(data, made->stride);
  for (int i = 0; i < data->rank; i++) {
    made->shape[i] = indices->shape[i];
    if (i != axis && indices->shape[i] > data->shape[i]) refuse(plan, "more indices than elements");
  }
  return made;
}

/* Call `BODY` with the offset in the data of each index, in order. */
#define FOR_EACH_ELEMENT(elements, indices, narrow, count, BODY)                            \
  int64_t at[MOST_AXES] = {0}, base = 0;                                                    \
  int last = (elements)->rank - 1;                                                          \
  for (int64_t i = 0; i < (count); i++) {                                                   \
    int64_t index = index_at(indices, i, narrow, (elements)->size);                         \
    if (index < 0) return OUT_OF_RANGE;                                                     \
    int64_t offset = base + index * (elements)->stride[(elements)->axis];                   \
    BODY;                                                                                   \
    for (int a = last; a >= 0; a--) {                                                       \
      int64_t stride = a == (elements)->axis ? 0 : (elements)->stride[a];                   \
      base += stride;                                                                       \
      if (++at[a] < (elements)->shape[a]) break;                                            \
      base -= stride * (elements)->shape[a];                                                \
      at[a] = 0;                                                                            \
    }                                                                                       \
  }

static const char *run_gather_elements(Step *step) {
  const Elements *elements = step->extra;
  int64_t bytes = step->n[1];
  char *out = step->out;
  FOR_EACH_ELEMENT(elements, step->in[1], (int)step->n[2], step->n[0],
                   copy_bytes(out + i * bytes, step->in[0] + offset, bytes))
  return NULL;
}

void plan_gather_elements(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  int64_t axis = axis_of(plan, instruction->attribute[0], data.rank);
  set_shape(plan, instruction->out[0], indices.rank, indices.shape);
  Step *step = emit(plan, run_gather_elements);
  step->extra = elements_of(plan, &data, &indices, axis);
  reads(plan, &step->in[0], instruction->in[0], 0);
  reads(plan, &step->in[1], instruction->in[1], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  step->n[0] = indices.size;
  step->n[1] = bytes_of_one(plan, instruction->in[0]);
  step->n[2] = is_int32(plan, &indices);
}

/* Places in data that rows of indices name. */
typedef struct {
  int64_t rows, rows_of_batch, depth, batch_bytes, part_bytes;
  int64_t size[MOST_AXES], stride[MOST_AXES];
  int narrow;
} Places;

static inline int64_t place_of(const Places *places, const char *indices, int64_t row) {
  int64_t offset = row / places->rows_of_batch * places->batch_bytes;
  for (int64_t k = 0; k < places->depth; k++) {
    int64_t index = index_at(indices, row * places->depth + k, places->narrow, places->size[k]);
    if (index < 0) return -1;
    offset += index * places->stride[k];
  }
  return offset;
}

static Places *places_of(Plan *plan, const Array *data, const Array *indices, int batch_axes) {
  Places *made = memory(plan, sizeof *made);
  if (!indices->rank || indices->rank - 1 < batch_axes) refuse(plan, "indices have too few axes");
  int64_t strides[MOST_AXES];
  strides_of(data, strides);
  made->narrow = is_int32(plan, indices);
  made->depth = indices->shape[indices->rank - 1];
  if (batch_axes + made->depth > data->rank) refuse(plan, "indices are too long");
  made->rows = product(indices->shape, 0, indices->rank - 1);
  made->rows_of_batch = product(indices->shape, batch_axes, indices->rank - 1);
  made->rows_of_batch += !made->rows_of_batch;
  for (int axis = 0; axis < batch_axes; axis++) {
    if (data->shape[axis] != indices->shape[axis]) refuse(plan, "batches differ in size");
  }
  for (int64_t k = 0; k < made->depth; k++) {
    made->size[k] = data->shape[batch_axes + k];
    made->stride[k] = strides[batch_axes + k];
  }
  int64_t bytes = (int64_t)bytes_of_element(data->dtype);
  made->batch_bytes = product(data->shape, batch_axes, data->rank) * bytes;
  made->part_bytes = product(data->shape, batch_axes + made->depth, data->rank) * bytes;
  return made;
}

static const char *run_gather_nd(Step *step) {
  const Places *places = step->extra;
  char *out = step->out;
  for (int64_t row = 0; row < places->rows; row++, out += places->part_bytes) {
    int64_t offset = place_of(places, step->in[1], row);
    if (offset < 0) return OUT_OF_RANGE;
    copy_bytes(out, step->in[0] + offset, places->part_bytes);
  }
  return NULL;
}

void plan_gather_nd(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  int batch_axes = (int)between(instruction->attribute[0], 0, data.rank), rank = 0;
  int64_t shape[2 * MOST_AXES];
  Places *places = places_of(plan, &data, &indices, batch_axes);
  for (int i = 0; i < indices.rank - 1; i++) shape[rank++] = indices.shape[i];
  for (int64_t i = batch_axes + places->depth; i < data.rank; i++) shape[rank++] = data.shape[i];
  set_shape(plan, instruction->out[0], rank, shape);
  Step *step = emit(plan, run_gather_nd);
  step->extra = places;
  reads(plan, &step->in[0], instruction->in[0], 0);
  reads(plan, &step->in[1], instruction->in[1], 0);
  writes(plan, &step->out, instruction->out[0], 0);
}

/* Put `count` elements at an address, or add them to those there. */
typedef void (*Put)(char *to, const char *from, int64_t count);

#define PUT(name, T, W)                                                          \
  static void put_##name(char *to, const char *from, int64_t count) {            \
    memcpy(to, from, (size_t)count * sizeof(T));                                 \
  }                                                                              \
  static void add_##name(char *to, const char *from, int64_t count) {            \
    for (int64_t i = 0; i < count; i++) {                                        \
      ((T *)to)[i] = (T)((W)((T *)to)[i] + (W)((const T *)from)[i]);             \
    }                                                                            \
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

typedef struct {
  Put put;
  union {
    Elements *elements;
    Places *places;
  };
} Scatter;

static const char *run_scatter_elements(Step *step) {
  const Scatter *scatter = step->extra;
  int64_t bytes = step->n[1];
  FOR_EACH_ELEMENT(scatter->elements, step->in[1], (int)step->n[2], step->n[0],
                   scatter->put(step->out + offset, step->in[2] + i * bytes, 1))
  return NULL;
}

static Step *scatters(Plan *plan, const Instruction *instruction, Run run, Put put) {
  Array data = *operand(plan, instruction, 0);
  set_shape(plan, instruction->out[0], data.rank, data.shape);
  copies(plan, instruction->out[0], instruction->in[0]);
  Step *step = emit(plan, run);
  Scatter *scatter = memory(plan, sizeof *scatter);
  scatter->put = put;
  step->extra = scatter;
  reads(plan, &step->in[1], instruction->in[1], 0);
  reads(plan, &step->in[2], instruction->in[2], 0);
  writes(plan, &step->out, instruction->out[0], 0);
  return step;
}

void plan_scatter_elements(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  int64_t axis = axis_of(plan, instruction->attribute[0], data.rank);
  if (!same_shape(&indices, operand(plan, instruction, 2))) refuse(plan, "indices and updates differ");
  Elements *elements = elements_of(plan, &data, &indices, axis);
  Put put = put_for(plan, data.dtype, instruction->attribute[1]);
  Step *step = scatters(plan, instruction, run_scatter_elements, put);
  ((Scatter *)step->extra)->elements = elements;
  step->n[0] = indices.size;
  step->n[1] = (int64_t)bytes_of_element(data.dtype);
  step->n[2] = is_int32(plan, &indices);
}

static const char *run_scatter_nd(Step *step) {
  const Scatter *scatter = step->extra;
  const Places *places = scatter->places;
  const char *from = step->in[2];
  for (int64_t row = 0; row < places->rows; row++, from += places->part_bytes) {
    int64_t offset = place_of(places, step->in[1], row);
    if (offset < 0) return OUT_OF_RANGE;
    scatter->put(step->out + offset, from, step->n[0]);
  }
  return NULL;
}

void plan_scatter_nd(Plan *plan, const Instruction *instruction) {
  Array data = *operand(plan, instruction, 0), indices = *operand(plan, instruction, 1);
  Array updates = *operand(plan, instruction, 2), wanted = updates;
  Places *places = places_of(plan, &data, &indices, 0);
  wanted.rank = 0;
  for (int i = 0; i < indices.rank - 1; i++) wanted.shape[wanted.rank++] = indices.shape[i];
  for (int64_t i = places->depth; i < data.rank && wanted.rank < MOST_AXES; i++) {
    wanted.shape[wanted.rank++] = data.shape[i];
  }
  if (!same_shape(&updates, &wanted)) refuse(plan, "updates have another shape");
  Put put = put_for(plan, data.dtype, instruction->attribute[0]);
  Step *step = scatters(plan, instruction, run_scatter_nd, put);
  ((Scatter *)step->extra)->places = places;
  step->n[0] = places->part_bytes / (int64_t)bytes_of_element(data.dtype);
}
