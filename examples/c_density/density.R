# Print the log-density of a model at its initial point, and the first element of the gradient;
# then find the mode by optim.
#
# Rscript density.R FOLDER
folder <- commandArgs(TRUE)[1]
dyn.load(file.path(folder, paste0("libpytensor_onnx", .Platform$dynlib.ext)))
path <- file.path(folder, "model.density")
opened <- .C("density_open_R", path, density = raw(8), message = "")
if (nzchar(opened$message)) stop(opened$message)
density <- opened$density
sizes <- .C("density_dim_R", density, dim = 0L, variables = 0L)

evaluate <- function(point) {
  .C("density_log_density_gradient_R", density, as.double(point),
     value = 0, gradient = numeric(sizes$dim), reason = 0L)
}

start <- .C("density_start_R", density, point = numeric(sizes$dim))$point
found <- evaluate(start)
cat(format(c(found$value, found$gradient[1]), digits = 17), "\n")

best <- optim(start, function(x) -evaluate(x)$value, function(x) -evaluate(x)$gradient,
              method = "BFGS")
names <- .C("density_names_R", density, point = character(sizes$dim),
            variables = character(sizes$variables))$variables
values <- .C("density_variables_R", density, best$par, variables = numeric(sizes$variables),
             reason = 0L)$variables
print(setNames(values, names))
invisible(.C("density_close_R", density))
