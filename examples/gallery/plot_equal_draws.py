"""
Random draws that are equal everywhere
======================================

A file draws from the state that you give it: on a server, in a browser and on a phone, a seed gives
the same numbers, and each run returns the state for the next one.
"""

# %%
# A random walk of normal steps with jumps of a gamma distribution.
import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt

from pytensor_onnx import export_onnx
from pytensor_onnx.random import state_of

generator = pytensor.shared(np.random.default_rng(42), name="generator")
steps = pt.lscalar("steps")
after_steps, normal = pt.random.normal(size=(3, steps), rng=generator).owner.outputs
after, jumps = pt.random.gamma(0.1, scale=1.0, size=(3, steps), rng=after_steps).owner.outputs
walk = (normal * 0.3 + jumps).cumsum(axis=1)

program = export_onnx([steps], {"walk": walk}, "walk.onnx", updates={generator: after})
print(program)

# %%
# The first run of the file starts from a seed, the second from the state that the first returned.
session = onnxruntime.InferenceSession("walk.onnx")
length = np.array(200)
first, state = session.run(None, {"steps": length, "generator": state_of(7)})
second, state = session.run(None, {"steps": length, "generator": state})

# %%
# Mode ONNX draws the same numbers from the same seed.
generator.set_value(np.random.default_rng(7))
draw = pytensor.function([steps], walk, updates={generator: after}, mode="ONNX")
print("equal in every bit:", np.array_equal(draw(200), first), np.array_equal(draw(200), second))

# %%
# Three walks of each run; the second run goes on where the first ended.
fig, ax = plt.subplots(figsize=(9, 4), layout="constrained")
for a, b in zip(first, second, strict=True):
    line = ax.plot(np.arange(200), a)[0]
    ax.plot(np.arange(200, 400), a[-1] + b, color=line.get_color(), linestyle="--")
ax.axvline(200, color="gray", linewidth=1)
ax.set_xlabel("step")
ax.set_ylabel("position")
plt.show()
