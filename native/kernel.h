/* Arrays, and kernels of model-local functions. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

typedef void (*Function)(void);

/* What the names of functions say beside the kernel and the dtype: batch axes, sizes, blocks. */
enum { BATCHED = 1, SIZED = 2, IN_BLOCKS = 4 };

/* A model-local function with a kernel of its own, for each dtype of floats.
 *
 * `infer` sets dtype, rank and shape of the outputs from those of the inputs, and the bytes of
 * scratch memory; `run` computes. Both return NULL, or a message where the kernel cannot run. */
typedef struct Kernel Kernel;
struct Kernel {
  const char *name; /* of the function, without what follows from the inputs */
  int inputs, outputs, options, variants;
  int second_dtype; /* of the second output, if it is another one than that of the inputs */
  const char *(*infer)(const Kernel *kernel, const Array *in, Array *out, size_t *scratch);
  const char *(*run)(const Kernel *kernel, const Array *in, Array *out, void *scratch);
  Function functions[4]; /* for float64 and float32, then for wide vectors, NULL without */
  /* Of a function whose name is the kernel's: types, that of the second operand if it is another
   * one, and the operand whose value decides sizes. */
  int operand_dtype, second_operand, result_dtype, sized_by;
};

/* Return the type of an operand of a kernel for a dtype. */
static inline int operand_dtype(const Kernel *kernel, int dtype, size_t i) {
  if (i == 1 && kernel->second_operand) return kernel->second_operand;
  return kernel->operand_dtype ? kernel->operand_dtype : dtype;
}

#define NO_MATRIX "an operand is no matrix"

/* Rows and columns of the largest matrices: the bytes of scratch memory are in the range of a size. */
#ifdef __wasm__
enum { MOST_ROWS = 1 << 13 };
#else
enum { MOST_ROWS = 1 << 24 };
#endif

/* Return why an operand is no matrix of a kernel, NULL if it is one. */
static inline const char *no_matrix(const Array *in) {
  if (in->rank < 2) return NO_MATRIX;
  int is_large = in->shape[in->rank - 2] > MOST_ROWS || in->shape[in->rank - 1] > MOST_ROWS;
  return is_large ? "a matrix is too large" : NULL;
}

/* Kernels by family, each ended by one without a name. */
extern const Kernel CIPHER_KERNELS[], DRAW_KERNELS[], EIGEN_KERNELS[], LINALG_KERNELS[], SCHUR_KERNELS[],
    SPECIAL_KERNELS[];

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
#define FUNCTIONS(...) {__VA_ARGS__}
#define WITH_WIDE(x)                                                               \
  FUNCTIONS((Function)x##_float64, (Function)x##_float32, (Function)x##_float64_wide, \
            (Function)x##_float32_wide)
#define DOUBLE_WITH_WIDE(x) FUNCTIONS((Function)x##_float64, NULL, (Function)x##_float64_wide)
#elif defined(IS_CORE)
#define FUNCTIONS(...) {__VA_ARGS__}
#define WITH_WIDE(x) FUNCTIONS((Function)x##_float64)
#else
#define FUNCTIONS(...) {__VA_ARGS__}
#define WITH_WIDE(x) FUNCTIONS((Function)x##_float64, (Function)x##_float32)
#define DOUBLE_WITH_WIDE(x) FUNCTIONS((Function)x##_float64)
#endif

#ifdef WIDE
extern int has_narrow_vectors; /* whatever the processor has, for tests */
static inline int has_wide_vectors(void) {
  return __builtin_cpu_supports("avx2") && !has_narrow_vectors;
}
#endif

/* Return the function of a kernel for a dtype and the processor. */
static inline Function function_for(const Kernel *kernel, int dtype) {
  int i = dtype == FLOAT64 ? 0 : 1;
#ifdef WIDE
  if (kernel->functions[2 + i] && has_wide_vectors()) i += 2;
#endif
  return kernel->functions[i];
}

/* Find the kernel of a function and its dtype by the function's name; NULL without one. */
const Kernel *find_kernel(const char *name, int *dtype);

/* Whether the core of WebAssembly lacks the kernel of a function. */
int is_rare_kernel(const char *name);

/* Write the names of functions with kernels, each followed by a comma, and return the length of
 * the whole text, which may be longer than the memory. */
size_t kernel_names(char *text, size_t size);

static inline size_t bytes_of_element(int dtype) {
  switch (dtype) {
    case FLOAT64: case INT64: case UINT64: return 8;
    case FLOAT32: case INT32: case UINT32: return 4;
    case INT16: case UINT16: return 2;
    default: return 1;
  }
}

/* Copy bytes; an array without elements may have no address, which `memcpy` must not see. */
static inline void copy_bytes(void *to, const void *from, int64_t bytes) {
  if (bytes > 0) memcpy(to, from, (size_t)bytes);
}

static inline void count_elements(Array *array) {
  array->size = 1;
  for (int i = 0; i < array->rank; i++) array->size *= array->shape[i];
}

#endif
