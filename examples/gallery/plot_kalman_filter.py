"""
A Kalman filter
===============

A loop in PyTensor becomes one loop in the file. It tracks a moving body from noisy positions, for
sequences of any length.
"""

# %%
# The state is a position and a velocity; each step predicts it and corrects it by a measurement.
import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt

from pytensor_onnx import export_onnx

motion = np.array([[1.0, 1.0], [0.0, 1.0]])
drift = np.array([[0.25, 0.5], [0.5, 1.0]]) * 0.05
measurements, noise = pt.vector("measurements"), pt.scalar("noise")


def step(measured, state, covariance, noise):
    state = pt.dot(motion, state)
    covariance = motion @ covariance @ motion.T + drift
    gain = covariance[:, 0] / (covariance[0, 0] + noise**2)
    state = state + gain * (measured - state[0])
    return state, covariance - pt.outer(gain, covariance[0])


states, covariances = pytensor.scan(
    step,
    sequences=[measurements],
    outputs_info=[pt.zeros(2), pt.eye(2) * 100],
    non_sequences=[noise],
    return_updates=False,
)
program = export_onnx(
    [measurements, noise],
    {"position": states[:, 0], "deviation": pt.sqrt(covariances[:, 0, 0])},
    "filter.onnx",
)
print(program)

# %%
# The file filters a track of 80 measurements, whose noise has a standard deviation of 3.
rng = np.random.default_rng(2)
time = np.arange(80)
track = 20 * np.sin(time / 12) + 0.3 * time
measured = track + rng.normal(0, 3, time.size)
session = onnxruntime.InferenceSession("filter.onnx")
position, deviation = session.run(None, {"measurements": measured, "noise": np.array(3.0)})

fig, ax = plt.subplots(figsize=(9, 4), layout="constrained")
ax.plot(time, measured, "k.", label="measured")
ax.plot(time, track, "k--", linewidth=1, label="true")
ax.plot(time, position, label="filtered")
ax.fill_between(time, position - 2 * deviation, position + 2 * deviation, alpha=0.3)
ax.set_xlabel("step")
ax.set_ylabel("position")
ax.legend()
plt.show()
