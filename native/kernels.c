/* The table of kernels of model-local functions. */
#include "kernel.h"

const Kernel *const KERNELS[] = {NULL};
