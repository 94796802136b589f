"""
Sampling with native kernels
============================

A density has hundreds of small operations, and a sampler calls it many thousands of times. The
native library of this package runs these operations together.
"""

# %%
# A logistic regression with effects of groups: how does the chance of germination of seeds depend
# on the temperature, in twelve boxes?
import timeit
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import nutpie
import pymc as pm

from pytensor_onnx.pymc import nutpie_model

rng = np.random.default_rng(4)
box = np.repeat(np.arange(12), 10)
temperature = np.tile(np.linspace(5, 30, 10), 12)
chance = 1 / (1 + np.exp(-(0.25 * (temperature - 17) + rng.normal(0, 0.7, 12)[box])))
germinated = rng.binomial(20, chance)

with pm.Model(coords={"box": np.arange(12)}) as model:
    spread = pm.HalfNormal("spread", 1)
    effect = pm.Deterministic("effect", spread * pm.Normal("z", dims="box"), dims="box")
    slope, middle = pm.Normal("slope", 0, 1), pm.Normal("middle", 17, 5)
    score = slope * (temperature - middle) + effect[box]
    pm.Binomial("germinated", 20, logit_p=score, observed=germinated)

# %%
# nutpie calls the density on ONNX Runtime as a C function, without Python.
compiled = nutpie_model(model)
trace = nutpie.sample(compiled, draws=500, tune=500, chains=2, seed=1, progress_bar=False)

# %%
# The same density and its gradient with and without the library, one thread each.
from pytensor.compile.mode import Mode

from pytensor_onnx import ONNXLinker, SessionOptions

point = pm.blocking.DictToArrayBijection.map(model.initial_point()).data
times = {}
for name, kernels in (("with kernels", True), ("without", False)):
    linker = ONNXLinker(session_options=SessionOptions(threads=1, kernels=kernels))
    value_and_gradient = model.logp_dlogp_function(mode=Mode(linker, "fast_run"), ravel_inputs=True)
    rounds = timeit.repeat(partial(value_and_gradient, point), number=100, repeat=5)
    times[name] = min(rounds) * 1e4
print({name: f"{time:.0f} µs" for name, time in times.items()})

# %%
# The posterior of the curve, and the time of a call.
draws = trace.posterior.to_dataset().stack(sample=("chain", "draw"))
at = np.linspace(5, 30, 60)[:, None]
curves = 1 / (1 + np.exp(-draws["slope"].values * (at - draws["middle"].values)))
low, high = np.quantile(curves, [0.05, 0.95], axis=1)
fig, axes = plt.subplots(1, 2, figsize=(10, 4), width_ratios=[2, 1], layout="constrained")
axes[0].plot(temperature, germinated / 20, "k.", alpha=0.3)
axes[0].fill_between(at[:, 0], low, high, alpha=0.4)
axes[0].plot(at, curves.mean(axis=1))
axes[0].set(xlabel="temperature in °C", ylabel="share of germinated seeds")
axes[1].bar(list(times), list(times.values()))
axes[1].set_ylabel("time of a density with its gradient in µs")
plt.show()
