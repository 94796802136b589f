/* Sizes of arrays, and copies with any strides or offsets. */
#include "arrays.h"

#ifdef __wasm__
enum { MOST_ELEMENTS = 1 << 28 }; /* whose bytes are in the range of its sizes */
#else
enum { MOST_ELEMENTS = 1 << 30 };
#endif

const char *set_sizes(Array *array, int64_t rank, const int64_t *shape) {
  if (rank > MOST_AXES) return "too many axes";
  array->rank = (int)rank;
  array->size = 1;
  int64_t extent = 1; /* without axes of size zero, so that no product of sizes overflows */
  for (int axis = 0; axis < rank; axis++) {
    array->shape[axis] = shape[axis];
    if (shape[axis] < 0) return "a size is negative";
    if (shape[axis] > MOST_ELEMENTS) return "an array is too large";
    array->size *= shape[axis];
    extent *= shape[axis] ? shape[axis] : 1;
    if (extent > MOST_ELEMENTS) return "an array is too large";
  }
  return NULL;
}

int same_shape(const Array *a, const Array *b) {
  return a->rank == b->rank && !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape);
}

int64_t bytes_of(const Array *array) {
  return array->size * (int64_t)bytes_of_element(array->dtype);
}

void strides_of(const Array *array, int64_t *strides) {
  int64_t stride = (int64_t)bytes_of_element(array->dtype);
  for (int axis = array->rank - 1; axis >= 0; axis--) {
    strides[axis] = stride;
    stride *= array->shape[axis];
  }
}

Layout layout_of(int rank, const int64_t *shape, const int64_t *strides) {
  Layout made = {0};
  for (int axis = 0; axis < rank; axis++) {
    if (shape[axis] == 1) continue;
    int last = made.rank - 1;
    if (made.rank && made.stride[last] == strides[axis] * shape[axis]) {
      made.shape[last] *= shape[axis];
      made.stride[last] = strides[axis];
    } else {
      made.shape[made.rank] = shape[axis];
      made.stride[made.rank++] = strides[axis];
    }
  }
  return made;
}

enum { SHORT = 16 };

/* Files that are compiled for size have no vectors of their own. */
#ifdef __wasm__
#define FILL_EIGHT(T)                                                            \
  typedef T Eight __attribute__((ext_vector_type(8), aligned(sizeof(T)), may_alias)); \
  for (; count >= 8; count -= 8, to += 8) *(Eight *)to = value;
#else
#define FILL_EIGHT(T)
#endif

#define COPY_ROW(T)                                                              \
  {                                                                              \
    T *to = (T *)out;                                                            \
    if (stride == 0) {                                                           \
      T value = *(const T *)in;                                                  \
      FILL_EIGHT(T)                                                              \
      for (int64_t i = 0; i < count; i++) to[i] = value;                         \
    } else {                                                                     \
      for (int64_t i = 0; i < count; i++) to[i] = *(const T *)(in + i * stride); \
    }                                                                            \
    break;                                                                       \
  }

static inline void copy_row(char *out, const char *in, int64_t stride, int64_t count, size_t bytes) {
  if (stride == (int64_t)bytes && count > SHORT) {
    memcpy(out, in, (size_t)count * bytes);
    return;
  }
  switch (bytes) {
    case 8: COPY_ROW(uint64_t)
    case 4: COPY_ROW(uint32_t)
    default: COPY_ROW(uint8_t)
  }
}

enum { ROWS = 64, TILE = 8 };

/* Copy short rows column by column, a few rows at a time: the long axis is the inner loop. */
#define COPY_COLUMNS(T)                                                                         \
  for (int64_t row = 0; row < rows; row += ROWS) {                                              \
    int64_t end = rows - row < ROWS ? rows : row + ROWS;                                        \
    for (int64_t k = 0; k < columns; k++) {                                                     \
      T *to = (T *)out + k;                                                                     \
      const char *from = in + k * column_stride;                                                \
      for (int64_t i = row; i < end; i++) to[i * columns] = *(const T *)(from + i * row_stride); \
    }                                                                                           \
  }                                                                                             \
  break;

#define COPY_TILE(T, HEIGHT, WIDTH)                                       \
  for (int64_t k = 0; k < WIDTH; k++) {                                   \
    const T *from = (const T *)(in + (column + k) * column_stride) + row; \
    for (int64_t i = 0; i < HEIGHT; i++) tile[i][k] = from[i];            \
  }                                                                       \
  for (int64_t i = 0; i < HEIGHT; i++) {                                  \
    for (int64_t k = 0; k < WIDTH; k++) to[i * columns + k] = tile[i][k]; \
  }

/* Copy columns that lie in a row each, tile by tile: each cache line is read and written once. */
#define COPY_TILES(T)                                                         \
  for (int64_t row = 0; row < rows; row += TILE) {                            \
    int64_t height = rows - row < TILE ? rows - row : TILE;                   \
    for (int64_t column = 0; column < columns; column += TILE) {              \
      T tile[TILE][TILE], *to = (T *)out + row * columns + column;            \
      int64_t width = columns - column < TILE ? columns - column : TILE;      \
      if (height == TILE && width == TILE) {                                  \
        COPY_TILE(T, TILE, TILE)                                              \
      } else {                                                                \
        COPY_TILE(T, height, width)                                           \
      }                                                                       \
    }                                                                         \
  }                                                                           \
  break;

static void copy_short_rows(char *out, const char *in, int64_t rows, int64_t columns,
                            int64_t row_stride, int64_t column_stride, size_t bytes) {
  switch (bytes) {
    case 8: COPY_COLUMNS(uint64_t)
    case 4: COPY_COLUMNS(uint32_t)
    default: COPY_COLUMNS(uint8_t)
  }
}

static void copy_columns(char *out, const char *in, int64_t rows, int64_t columns,
                         int64_t column_stride, size_t bytes) {
  switch (bytes) {
    case 8: COPY_TILES(uint64_t)
    case 4: COPY_TILES(uint32_t)
    default: COPY_TILES(uint8_t)
  }
}

/* Repeat the first bytes of a result in the others. */
static void repeat(char *out, int64_t period, int64_t bytes) {
  for (int64_t done = period; done < bytes;) {
    int64_t part = done < bytes - done ? done : bytes - done;
    memcpy(out + done, out, (size_t)part);
    done += part;
  }
}

static void copy_rows(char *out, const char *in, const Layout *layout, size_t bytes, int64_t start,
                      int64_t count) {
  int last = layout->rank - 1;
  int64_t at[MOST_AXES];
  for (int axis = last; axis >= 0; axis--) {
    at[axis] = start ? start % layout->shape[axis] : 0; /* divisions take time */
    start = start ? start / layout->shape[axis] : 0;
    in += at[axis] * layout->stride[axis];
  }
  int64_t columns = layout->shape[last];
  int has_short_rows = last && columns <= SHORT;
  int64_t unit = (int64_t)bytes;
  int64_t pitch = layout->stride[last];
  int has_columns = last && layout->stride[last - 1] == unit && pitch && pitch != unit;
  while (count > 0) {
    int axis = last - 1;
    if ((has_short_rows || has_columns) && !at[last] && count >= columns) {
      int64_t whole = count / columns, rest = layout->shape[axis] - at[axis];
      int64_t rows = whole < rest ? whole : rest;
      if (has_short_rows) {
        copy_short_rows(out, in, rows, columns, layout->stride[axis], pitch, bytes);
      } else {
        copy_columns(out, in, rows, columns, pitch, bytes);
      }
      out += rows * columns * (int64_t)bytes;
      count -= rows * columns;
      in += (rows - 1) * layout->stride[axis];
      at[axis] += rows - 1;
    } else {
      int64_t rest = columns - at[last], row = rest < count ? rest : count;
      copy_row(out, in, layout->stride[last], row, bytes);
      out += row * (int64_t)bytes;
      count -= row;
      in -= at[last] * layout->stride[last];
      at[last] = 0;
    }
    for (; axis >= 0; axis--) {
      in += layout->stride[axis];
      if (++at[axis] < layout->shape[axis]) break;
      in -= layout->shape[axis] * layout->stride[axis];
      at[axis] = 0;
    }
  }
}

void copy_layout(char *out, const char *in, const Layout *layout, size_t bytes, int64_t start,
                 int64_t count) {
  if (count <= 0) return;
  if (!layout->rank) {
    copy_row(out, in, 0, count, bytes);
    return;
  }
  int64_t period = layout->rank > 1 && !layout->stride[0] ? 1 : count;
  for (int axis = 1; axis < layout->rank && period < count; axis++) period *= layout->shape[axis];
  period = period < count ? period : count;
  copy_rows(out, in, layout, bytes, start, period);
  repeat(out, period * (int64_t)bytes, count * (int64_t)bytes);
}

/* Eight at a time: a load after a store to an address 4,096 bytes apart waits for it. In
 * WebAssembly a compiler calls `memcpy` for eight stores, which is slow. */
#ifdef __wasm__
#define TAKE_EIGHT(T)
#else
#define TAKE_EIGHT(T)                                                            \
  for (; i + 8 <= count; i += 8) {                                               \
    T part[8];                                                                   \
    for (int k = 0; k < 8; k++) part[k] = *(const T *)(in + offset[i + k]);      \
    memcpy(to + i, part, sizeof part);                                           \
  }
#endif
#define TAKE(T)                                                                  \
  {                                                                              \
    T *to = (T *)out;                                                            \
    int64_t i = 0;                                                               \
    TAKE_EIGHT(T)                                                                \
    for (; i < count; i++) to[i] = *(const T *)(in + offset[i]);                 \
  }

void copy_elements(char *out, const char *in, const int64_t *offset, int64_t count, int64_t bytes) {
  if (bytes == 8) TAKE(uint64_t)
  else if (bytes == 4) TAKE(uint32_t)
  else if (bytes == 1) TAKE(uint8_t)
  else if (bytes) {
    for (int64_t i = 0; i < count; i++) memcpy(out + i * bytes, in + offset[i], (size_t)bytes);
  }
}
