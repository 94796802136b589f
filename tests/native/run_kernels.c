/* Run all kernels on arrays of exactly their sizes, for the sanitizers of a compiler. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../native/kernel.h"

static const double NUMBERS[] = {0.0, -0.0, 1.0, -1.0, 0.3, 4e-320, 1e300, -1e300, 36.5, -700.2};

static double number(int64_t i, int64_t n, int kind) {
  double random = (double)(i * 2654435761u % 1000) / 1000 + (i % (n + 1) == 0 ? (double)n : 0);
  if (kind == 0) return random;
  return kind == 1 ? 0.0 : i % 7 == 3 ? NAN : i % 7 == 5 ? INFINITY : NUMBERS[i % 10];
}

static void allocate(Array *array, int64_t n, int kind) {
  count_elements(array);
  array->data = malloc((size_t)array->size * bytes_of_element(array->dtype));
  for (int64_t i = 0; kind >= 0 && i < array->size; i++) {
    if (array->dtype == FLOAT64) ((double *)array->data)[i] = number(i, n, kind);
    if (array->dtype == FLOAT32) ((float *)array->data)[i] = (float)number(i, n, kind);
  }
}

/* The shape of an operand: matrices of n rows, with 7 columns where they need not be square. */
static void shape_operand(Array *array, const char *name, int i, int64_t n, int64_t batch) {
  int axes = strstr(name, "_batch") || strstr(name, "QuasiTriangular") ? 1 : 0;
  int is_vector = i == 1 && strstr(name, "b_ndim_1");
  int64_t columns = n;
  if (strstr(name, "QuasiTriangular")) columns = 2 * n;
  if (strstr(name, "QR_") || strstr(name, "SVD") || (i == 1 && !strstr(name, "TRSYL"))) columns = 7;
  array->rank = axes + (is_vector ? 1 : 2);
  array->shape[0] = batch;
  array->shape[axes] = n;
  if (!is_vector) array->shape[axes + 1] = columns;
}

/* A key of two words or a state of three, and a length, or counters of one or four words. */
static void shape_of_cipher(Array *array, const Kernel *kernel, int i, int64_t n) {
  array->dtype = operand_dtype(kernel, kernel->operand_dtype, (size_t)i);
  array->rank = i == 0 ? 1 : kernel->sized_by ? 0 : kernel->operand_dtype == UINT64 ? 1 : 2;
  array->shape[0] = i ? n : kernel->second_operand ? 3 : 2;
  array->shape[1] = 4;
}

static void run_kernel(const char *name, int64_t n, int64_t batch, int kind) {
  int dtype = 0;
  const Kernel *kernel = find_kernel(name, &dtype);
  Array in[8], out[8];
  size_t bytes = 0;
  for (int i = 0; i < kernel->inputs; i++) {
    in[i] = (Array){.dtype = dtype};
    if (kernel->operand_dtype) shape_of_cipher(&in[i], kernel, i, n);
    else shape_operand(&in[i], name, i, n, batch);
    allocate(&in[i], n, kind);
    for (int64_t k = 0; kernel->operand_dtype && k < in[i].size; k++) {
      ((int64_t *)in[i].data)[k] = kernel->sized_by && i ? 100 * n + n % 2 : k - 1;
    }
  }
  const char *problem = kernel->infer(kernel, in, out, &bytes);
  if (problem) printf("%s: %s\n", name, problem), exit(1);
  void *scratch = malloc(bytes);
  for (int i = 0; i < kernel->outputs; i++) allocate(&out[i], n, -1);
  kernel->run(kernel, in, out, scratch);
  for (int i = 0; i < kernel->inputs; i++) free(in[i].data);
  for (int i = 0; i < kernel->outputs; i++) free(out[i].data);
  free(scratch);
}

int main(void) {
  static char names[16384];
  static const int64_t SIZES[] = {0, 1, 2, 5, 31, 32, 33, 70};
  int count = 0;
  kernel_names(names, sizeof names);
  for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
    for (int kind = 0; kind < 3; kind++) {
      for (int i = 0; i < 8; i++) run_kernel(name, SIZES[i], i % 3, kind);
    }
    count++;
  }
  printf("%d kernels\n", count);
  return 0;
}
