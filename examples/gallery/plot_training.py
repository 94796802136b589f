"""
A training step as one file
===========================

The loss, its gradients and the optimiser are one model, so that a page in a browser or a phone can
train with a runtime alone.
"""

# %%
# A small network that learns a function of two variables, and one step of gradient descent with
# momentum.
import json

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt

from pytensor_onnx import export_onnx, export_training_step, nn

rng = np.random.default_rng(5)


def parameter(name, *shape):
    return pytensor.shared(rng.normal(0, 1 / np.sqrt(shape[0]), shape), name=name)


w1, w2 = parameter("w1", 2, 24), parameter("w2", 24, 1)
b1 = pytensor.shared(np.zeros(24), name="b1")
x, y = pt.matrix("x", shape=(None, 2)), pt.vector("y")
score = (pt.tanh(x @ w1 + b1) @ w2)[:, 0]
loss = nn.softplus(-y * score).mean()


def momentum(learning_rate):
    def rule(loss, parameters):
        updates = {}
        for p, g in zip(parameters, pt.grad(loss, parameters), strict=True):
            velocity = pytensor.shared(np.zeros_like(p.get_value()), name=f"{p.name}_velocity")
            updates[velocity] = 0.9 * velocity - learning_rate * g
            updates[p] = p + updates[velocity]
        return updates

    return rule


step = export_training_step(
    loss, [w1, b1, w2], momentum, inputs=[x, y], path="step.onnx", state_path="state.npz"
)
print(step)
export_onnx([x, w1, b1, w2], {"score": score}, "score.onnx")

# %%
# Training needs ONNX Runtime alone: each run takes the state that the one before returned.
session = onnxruntime.InferenceSession("step.onnx")
pairs = json.loads(session.get_modelmeta().custom_metadata_map["state"])
state = dict(np.load("state.npz"))
points = rng.uniform(-1, 1, (200, 2))
side = np.where(np.hypot(*points.T) < 0.7, 1.0, -1.0)
names = [value.name for value in session.get_outputs()]
losses = []
for _ in range(400):
    inputs = {"x": points, "y": side, "learning_rate": np.array(0.1)}
    results = dict(zip(names, session.run(None, inputs | state), strict=True))
    state = {name: results[after] for name, after in pairs.items()}
    losses.append(float(results[names[0]]))

# %%
# The loss, and the score of the trained network with the points that it learned from.
grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 60)] * 2), axis=-1).reshape(-1, 2)
weights = {name: state[name] for name in ("w1", "b1", "w2")}
(scores,) = onnxruntime.InferenceSession("score.onnx").run(None, {"x": grid} | weights)
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
axes[0].semilogy(losses)
axes[0].set_xlabel("step")
axes[0].set_ylabel("loss")
axes[1].contourf(*grid.T.reshape(2, 60, 60), scores.reshape(60, 60), 20, cmap="RdBu")
axes[1].scatter(*points.T, c=side, cmap="RdBu", edgecolor="k", s=15)
plt.show()

# %%
# `A page of this site <../demos/training/index.html>`__ trains with such a file.
