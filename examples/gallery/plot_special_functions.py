"""
Special functions beside SciPy
==============================

ONNX has no Bessel functions, no logarithm of the gamma function and no scaled complementary error
function. A file holds their definitions in float64, so that a browser or a phone computes them as
SciPy does.
"""

# %%
# Export a graph of special functions. Each operation that ONNX lacks is a function inside the file.
import matplotlib.pyplot as plt
import numpy as np
import pytensor.tensor as pt
import scipy.special

from pytensor_onnx import export_onnx

x = pt.vector("x")
functions = {"j0": pt.j0(x), "gammaln": pt.gammaln(x), "erfcx": pt.erfcx(x)}
program = export_onnx([x], functions, "special.onnx")
print(program)

# %%
# ONNX Runtime alone runs the file.
import onnxruntime

session = onnxruntime.InferenceSession("special.onnx")
points = np.linspace(0.05, 20, 2000)
results = dict(zip(functions, session.run(list(functions), {"x": points}), strict=True))

# %%
# The difference from SciPy, in units in the last place of SciPy's value, or of 1 where the value is
# smaller: next to a root the unit of the value is smaller than the error of either library.
fig, axes = plt.subplots(2, 3, figsize=(10, 5), sharex=True, layout="constrained")
for column, (name, result) in zip(axes.T, results.items(), strict=True):
    expected = getattr(scipy.special, name)(points)
    unit = np.spacing(np.maximum(abs(expected), 1.0))
    column[0].plot(points, result)
    column[0].set_title(name)
    column[1].plot(points, (result - expected) / unit, ".", markersize=2)
axes[0, 0].set_ylabel("value")
axes[1, 0].set_ylabel("difference from SciPy, ulp")
fig.supxlabel("x")
plt.show()
