"""
A hierarchical model that samples itself
========================================

One file holds the whole sampler of a model: warm-up and draws of NUTS. A browser or a server gives
the data and a seed, and gets the posterior.
"""

# %%
# Eight schools report effects of a training with their errors.
import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pymc as pm

from pytensor_onnx.pymc import export_sampler

effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
with pm.Model(coords={"school": list("ABCDEFGH")}) as model:
    y = pm.Data("y", effects, dims="school")
    mu, tau = pm.Normal("mu", 0, 5), pm.HalfCauchy("tau", 5)
    z = pm.Normal("z", dims="school")
    theta = pm.Deterministic("theta", mu + tau * z, dims="school")
    pm.Normal("effect", theta, errors, observed=y, dims="school")

program = export_sampler(model, "schools.onnx", variables=["mu", "tau", "theta"])
print(program)

# %%
# ONNX Runtime alone samples two chains, each from a seed of its own.
session = onnxruntime.InferenceSession("schools.onnx")
inputs = {"seed": np.array([1, 2]), "warmup": np.array(500), "draws": np.array(500), "y": effects}
names = [output.name for output in session.get_outputs()]
draws = dict(zip(names, session.run(None, inputs), strict=True))

# %%
# The posterior draws the schools together: small samples are believed less.
theta = draws["theta"].reshape(-1, 8)
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].errorbar(range(8), effects, errors, fmt="k.", label="reported", alpha=0.5)
axes[0].errorbar(
    np.arange(8) + 0.2, theta.mean(axis=0), theta.std(axis=0), fmt="o", label="posterior"
)
axes[0].set_xticks(range(8), list("ABCDEFGH"))
axes[0].set_ylabel("effect")
axes[0].legend()
for chain in draws["mu"]:
    axes[1].hist(chain, bins=30, histtype="step", density=True)
axes[1].set_xlabel("mu, two chains")
plt.show()

# %%
# `A page of this site <../demos/sampler/index.html>`__ draws with such a file, from numbers that
# you change.
