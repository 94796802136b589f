/* Sizes of arrays, and copies with any strides or offsets. */
#ifndef ARRAYS_H
#define ARRAYS_H

#include "kernel.h"

/* How elements of an array of another shape are found. */
typedef struct {
  int rank;
  int64_t shape[MOST_AXES], stride[MOST_AXES]; /* in bytes */
} Layout;

/* Set the sizes of an array whose bytes, and those of all its axes but the empty ones, are in the
 * range of a size; a problem, or NULL. */
const char *set_sizes(Array *array, int64_t rank, const int64_t *shape);
int same_shape(const Array *a, const Array *b);
int64_t bytes_of(const Array *array);
void strides_of(const Array *array, int64_t *strides);
/* Return the layout with as few axes as it takes. */
Layout layout_of(int rank, const int64_t *shape, const int64_t *strides);
/* Copy a part of the elements of a layout, each of a number of bytes. */
void copy_layout(char *out, const char *in, const Layout *layout, size_t bytes, int64_t start,
                 int64_t count);
/* Copy elements of a number of bytes at offsets. */
void copy_elements(char *out, const char *in, const int64_t *offset, int64_t count, int64_t bytes);

static inline int64_t product(const int64_t *sizes, int64_t from, int64_t to) {
  int64_t result = 1;
  for (int64_t i = from; i < to; i++) result *= sizes[i];
  return result;
}

static inline int64_t between(int64_t x, int64_t least, int64_t most) {
  return x < least ? least : x > most ? most : x;
}

#endif
