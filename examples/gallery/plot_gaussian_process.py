"""
A Gaussian process
==================

A file computes the posterior of a Gaussian process for any number of new points. The Cholesky
factorisation, which ONNX lacks, is a function inside the file.
"""

# %%
# A graph of data, new points and the parameters of the kernel. Sizes are known at run time only.
import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pytensor.tensor as pt

from pytensor_onnx import export_onnx

x, y, new = pt.vectors("x", "y", "new")
length, noise = pt.scalars("length", "noise")


def kernel(left, right):
    return pt.exp(-0.5 * ((left[:, None] - right[None, :]) / length) ** 2)


factor = pt.linalg.cholesky(kernel(x, x) + noise**2 * pt.eye(x.shape[0]))
weights = pt.linalg.solve_triangular(factor, kernel(x, new), lower=True)
mean = weights.T @ pt.linalg.solve_triangular(factor, y, lower=True)
deviation = pt.sqrt(1 - (weights**2).sum(axis=0))

program = export_onnx(
    [x, y, new, length, noise],
    {"mean": mean, "deviation": deviation},
    "process.onnx",
    dynamic_axes={"x": {0: "points"}, "y": {0: "points"}, "new": {0: "new_points"}},
    example_inputs=[np.arange(4.0), np.ones(4), np.linspace(0, 3, 7), 1.0, 0.1],
)
print(program)

# %%
# ONNX Runtime alone runs the file, for two lengths of the kernel.
session = onnxruntime.InferenceSession("process.onnx")
rng = np.random.default_rng(4)
points = np.sort(rng.uniform(0, 10, 12))
inputs = {
    "x": points,
    "y": np.sin(points) + rng.normal(0, 0.1, 12),
    "new": np.linspace(-1, 11, 300),
    "noise": np.array(0.1),
}
fig, axes = plt.subplots(1, 2, figsize=(10, 3.5), sharey=True, layout="constrained")
for ax, scale in zip(axes, (0.5, 1.5), strict=True):
    mean, deviation = session.run(None, inputs | {"length": np.array(scale)})
    ax.fill_between(inputs["new"], mean - 2 * deviation, mean + 2 * deviation, alpha=0.3)
    ax.plot(inputs["new"], mean)
    ax.plot(points, inputs["y"], "k.")
    ax.set_title(f"length {scale}")
plt.show()
