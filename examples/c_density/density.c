/* Print the log-density of a model at its initial point, and the first element of the gradient.
 *
 * cc density.c -IFOLDER -LFOLDER -Wl,-rpath,FOLDER -lpytensor_onnx -o density */
#include "density.h"

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
  Density *density;
  const char *problem = density_open(count > 1 ? arguments[1] : "model.density", &density);
  if (problem) {
    fprintf(stderr, "%s\n", problem);
    return 1;
  }
  size_t dim = (size_t)density_dim(density);
  double *point = malloc(dim * sizeof *point), *gradient = malloc(dim * sizeof *gradient);
  double log_density;
  density_start(density, point);
  int reason = density_log_density_gradient(density, point, &log_density, gradient);
  printf("%.17g %.17g\n", log_density, gradient[0]);
  free(point);
  free(gradient);
  density_close(density);
  return reason;
}
