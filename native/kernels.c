/* Kernels of model-local functions by their names. */
#include <string.h>

#include "kernel.h"

/* Families, and those whose names are whole, with their dtypes. The core of WebAssembly has the first
 * ones only, the first of all in double precision. */
#ifdef IS_CORE
static const Kernel *const FAMILIES[] = {LINALG_KERNELS, NULL};
static const Kernel *const NAMED[] = {DRAW_KERNELS, NULL};
#else
static const Kernel *const FAMILIES[] = {LINALG_KERNELS, EIGEN_KERNELS, SCHUR_KERNELS,
                                         SPECIAL_KERNELS, NULL};
static const Kernel *const NAMED[] = {DRAW_KERNELS, CIPHER_KERNELS, NULL};
#endif

/* Return the kernel whose name is that of a function. */
static const Kernel *find_named(const char *name) {
  for (int i = 0; NAMED[i]; i++) {
    for (const Kernel *kernel = NAMED[i]; kernel->name; kernel++) {
      if (!strcmp(kernel->name, name)) return kernel;
    }
  }
  return NULL;
}

#ifdef WIDE
int has_narrow_vectors;
#endif

/* Shorten a name by a last part; return whether it has the part. */
static int drop(const char *name, size_t *length, const char *part) {
  size_t count = strlen(part);
  if (*length <= count || memcmp(name + *length - count, part, count)) return 0;
  *length -= count;
  return 1;
}

/* Shorten a name by a part and a number; return whether it has both. */
static int drop_numbered(const char *name, size_t *length, const char *part) {
  size_t shorter = *length;
  while (shorter && name[shorter - 1] >= '0' && name[shorter - 1] <= '9') shorter--;
  if (shorter == *length || !drop(name, &shorter, part)) return 0;
  *length = shorter;
  return 1;
}

const Kernel *find_kernel(const char *name, int *dtype) {
  size_t length = strlen(name);
  int variants = 0;
  const Kernel *named = find_named(name);
  if (named) return *dtype = named->result_dtype, named;
  if (drop(name, &length, "_in_blocks")) variants |= IN_BLOCKS;
  else if (drop_numbered(name, &length, "_batch")) variants |= BATCHED;
  if (drop(name, &length, "_float64")) *dtype = FLOAT64;
  else if (drop(name, &length, "_float32")) *dtype = FLOAT32;
  else return NULL;
  if (drop_numbered(name, &length, "_n_") || drop_numbered(name, &length, "_m_")) variants |= SIZED;
  for (int i = 0; FAMILIES[i]; i++) {
    for (const Kernel *kernel = FAMILIES[i]; kernel->name; kernel++) {
      int is_named = strlen(kernel->name) == length && !memcmp(kernel->name, name, length);
      int is_covered = !(variants & ~kernel->variants) && function_for(kernel, *dtype);
      if (is_named) return is_covered ? kernel : NULL;
    }
  }
  return NULL;
}

int is_rare_kernel(const char *name) {
  int dtype = 0;
  const Kernel *found = find_kernel(name, &dtype);
  for (const Kernel *kernel = FAMILIES[0]; kernel->name; kernel++) {
    if (kernel == found) return dtype != FLOAT64;
  }
  for (const Kernel *kernel = NAMED[0]; kernel->name; kernel++) {
    if (kernel == found) return 0;
  }
  return 1;
}

/* Append a part of a text to those until its length, as far as there is room. */
static void append(char *text, size_t size, size_t *length, const char *part) {
  size_t count = strlen(part);
  if (*length + count < size) memcpy(text + *length, part, count);
  *length += count;
}

size_t kernel_names(char *text, size_t size) {
  static const char *const DTYPES[] = {"_float64", "_float32"};
  static const struct {
    int needs;
    const char *text;
  } VARIANTS[] = {{0, ""}, {BATCHED, "_batch1"}, {IN_BLOCKS, "_in_blocks"}};
  size_t length = 0;
  for (int i = 0; FAMILIES[i]; i++) {
    for (const Kernel *kernel = FAMILIES[i]; kernel->name; kernel++) {
      for (int d = 0; d < 2 && kernel->functions[d]; d++) {
        for (int v = 0; v < 3; v++) {
          if (VARIANTS[v].needs & ~kernel->variants) continue;
          const char *parts[] = {kernel->name, DTYPES[d], VARIANTS[v].text, ","};
          for (int p = 0; p < 4; p++) append(text, size, &length, parts[p]);
        }
      }
    }
  }
  for (int i = 0; NAMED[i]; i++) {
    for (const Kernel *kernel = NAMED[i]; kernel->name; kernel++) {
      append(text, size, &length, kernel->name);
      append(text, size, &length, ",");
    }
  }
  if (size) text[length < size ? length : size - 1] = 0;
  return length;
}
