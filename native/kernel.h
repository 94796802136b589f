/* Arrays, and kernels of model-local functions. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>

enum { MOST_AXES = 8 };

/* Element types, numbered as in ONNX. */
typedef enum {
  FLOAT32 = 1,
  UINT8 = 2,
  INT8 = 3,
  UINT16 = 4,
  INT16 = 5,
  INT32 = 6,
  INT64 = 7,
  BOOL = 9,
  FLOAT64 = 11,
  UINT32 = 12,
  UINT64 = 13,
} Dtype;

/* A contiguous array in row-major order. */
typedef struct {
  int dtype, rank;
  int64_t size;
  int64_t shape[MOST_AXES];
  void *data;
} Array;

/* A function with a kernel of its own.
 *
 * `infer` sets dtype, rank and shape of the outputs from those of the inputs, and the bytes of
 * scratch memory; `run` computes. Both return NULL, or a message where the kernel cannot run. */
typedef struct {
  const char *domain, *name;
  int inputs, outputs;
  const char *(*infer)(const Array *in, Array *out, size_t *scratch);
  const char *(*run)(const Array *in, Array *out, void *scratch);
} Kernel;

/* All of them, ended by NULL. */
extern const Kernel *const KERNELS[];

static inline size_t bytes_of_element(int dtype) {
  switch (dtype) {
    case FLOAT64: case INT64: case UINT64: return 8;
    case FLOAT32: case INT32: case UINT32: return 4;
    case INT16: case UINT16: return 2;
    default: return 1;
  }
}

static inline void count_elements(Array *array) {
  array->size = 1;
  for (int i = 0; i < array->rank; i++) array->size *= array->shape[i];
}

#endif
