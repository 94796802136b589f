/* Log-densities of PyMC models, for samplers in any language.
 *
 * `pytensor_onnx.pymc.export_c_density` writes this header, the library that it declares, and the
 * file that `density_open` reads. The library needs neither Python nor ONNX Runtime.
 *
 * Points are unconstrained: vectors of all continuous variables, with the terms of their
 * transforms in the density. Any number of threads may use one density at the same time. */
#ifndef PYTENSOR_ONNX_DENSITY_H
#define PYTENSOR_ONNX_DENSITY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct Density Density;

/* What functions return, beside 0. */
enum {
  DENSITY_FAILED = 1,              /* a check of the model fails, or there is no memory */
  DENSITY_GRADIENT_NOT_FINITE = 3, /* an element of the gradient is infinite or NaN */
  DENSITY_NOT_FINITE = 4           /* the log-density is infinite or NaN */
};

/* Open a file: NULL, or a message, which the caller does not free. */
const char *density_open(const char *path, Density **density);
void density_close(Density *density);

/* The elements of a point, and those of all variables. */
int64_t density_dim(const Density *density);
int64_t density_variable_count(const Density *density);

/* The name of an element of a point, or of the variables, as `beta.1`; NULL where there is none. */
const char *density_point_name(const Density *density, int64_t i);
const char *density_variable_name(const Density *density, int64_t i);

/* Write the initial point of the model. */
void density_start(const Density *density, double *point);

/* Write the log-density at a point, and its gradient; 0, or a reason. */
int density_log_density_gradient(Density *density, const double *point, double *log_density,
                                 double *gradient);

/* Write the variables at a point, then the deterministics; 0, or a reason. */
int density_variables(Density *density, const double *point, double *variables);

/* The same for R's interface .C: a density is raw(8), an empty message stands for none. */
void density_open_R(char **path, Density **density, char **message);
void density_close_R(Density **density);
void density_dim_R(Density **density, int *dim, int *variable_count);
void density_names_R(Density **density, char **point, char **variables);
void density_start_R(Density **density, double *point);
void density_log_density_gradient_R(Density **density, const double *point, double *log_density,
                                    double *gradient, int *reason);
void density_variables_R(Density **density, const double *point, double *variables, int *reason);

#ifdef __cplusplus
}
#endif

#endif
