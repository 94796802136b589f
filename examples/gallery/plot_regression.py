"""
A regression with intervals on new data
=======================================

A PyMC model, fitted once, becomes a file that predicts means and intervals for new data of any
length, without Python.
"""

# %%
# A curve through noisy points, fitted on ONNX Runtime.
import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pymc as pm

from pytensor_onnx.pymc import export_predictor

rng = np.random.default_rng(3)
points = np.sort(rng.uniform(-2, 2, 25))
observed = 1 + 0.5 * points - 0.8 * points**2 + rng.normal(0, 0.4, 25)

with pm.Model() as model:
    x = pm.Data("x", points)
    a, b, c = (pm.Normal(name, 0, 2) for name in "abc")
    sigma = pm.HalfNormal("sigma", 1)
    curve = pm.Deterministic("curve", a + b * x + c * x**2)
    pm.Normal("y", curve, sigma, shape=x.shape, observed=observed)
    fit = pm.sample(
        300, chains=2, cores=1, random_seed=1, progressbar=False, compile_kwargs={"mode": "ONNX"}
    )

# %%
# The file stores the draws of the posterior and computes means and intervals from them.
program = export_predictor(
    model, fit, "regression.onnx", outputs={"curve": ["mean", "hdi"], "y": ["hdi"]}
)
print(program)

# %%
# ONNX Runtime alone predicts on a grid beyond the data.
session = onnxruntime.InferenceSession("regression.onnx")
grid = np.linspace(-3, 3, 120)
mean, curve_hdi, y_hdi = session.run(None, {"x": grid, "seed": np.array(1)})

fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.fill_between(grid, *y_hdi.T, alpha=0.2, label="94 % of new observations")
ax.fill_between(grid, *curve_hdi.T, alpha=0.5, label="94 % of curves")
ax.plot(grid, mean, label="mean")
ax.plot(points, observed, "k.")
ax.set_xlabel("x")
ax.legend()
plt.show()

# %%
# `A page of this site <../demos/regression/index.html>`__ predicts with a fitted model, and its
# intervals move with the sliders.
