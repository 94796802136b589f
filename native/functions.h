/* Models as C functions. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "kernel.h"

/* How a model is opened. Who opens it keeps what the pointers name. */
typedef struct {
  const void *model, *plain; /* with regions, and without, which runs where a region refuses */
  uint64_t bytes, plain_bytes;
  const char *tape; /* NULL unless one region is the whole model, which needs no session then */
  uint64_t tape_bytes;
  const Array *operands; /* of the tape; the point is the one without data */
  const int64_t *places; /* the model's output of each output of the tape */
  const char *const *entries; /* keys and values of the configuration */
  int64_t entry_count, threads;
  const char *const *inputs, *const *outputs; /* names, the point first */
  int64_t operand_count, input_count, output_count;
  int64_t size; /* of the point */
  int32_t dtype;
} Settings;

/* Make a function of a model; NULL where it is refused. The inputs but the point are `data`, which
 * who opens it keeps. A model with a tape needs no ONNX Runtime. */
void *pytensor_onnx_open(const Settings *settings, const Array *data);
void pytensor_onnx_close(void *opened);

/* The log-density and its gradient at a point; 0, or a reason, which is a divergence if it is
 * positive. `data` has the function of the density, and that of the other results. */
int64_t pytensor_onnx_log_density(uint64_t size, const double *point, double *gradient,
                                  double *density, void *data);

/* All results of a model at a point, one after the other; 0, or a reason. */
int64_t write_outputs(void *opened, const double *point, double *out, int64_t size);

/* The point, and all results of the second function after it. */
int64_t pytensor_onnx_expand(uint64_t size, uint64_t expanded, const double *point, double *out,
                             void *data);

#endif
