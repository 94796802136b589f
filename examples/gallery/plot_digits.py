"""
Handwritten digits
==================

A network for images of digits is trained on ONNX Runtime, exported, and run by ONNX Runtime alone.
"""

# %%
# The network, its loss and one step of gradient descent, all in mode ``"ONNX"``: no compiler runs.
import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
import pytensor
import pytensor.tensor as pt
from sklearn.datasets import load_digits

from pytensor_onnx import export_onnx, nn

images, labels = load_digits(return_X_y=True)
images = (images / 16).astype("float32")
rng = np.random.default_rng(0)
order = rng.permutation(len(images))
train, test = order[:1500], order[1500:]


def parameter(name, *shape):
    values = rng.normal(0, np.sqrt(2 / shape[0]), shape)
    return pytensor.shared(values.astype("float32"), name=name)


x = pt.matrix("image", shape=(None, 64), dtype="float32")
label = pt.lvector("label")
hidden, out = parameter("hidden", 64, 48), parameter("out", 48, 10)
bias = pytensor.shared(np.zeros(48, "float32"), name="bias")
scores = nn.relu(x @ hidden + bias) @ out
loss = -nn.log_softmax(scores, axis=1)[pt.arange(label.shape[0]), label].mean()
parameters = [hidden, bias, out]
gradients = pt.grad(loss, parameters)
rate = np.float32(0.2)
updates = {p: p - rate * g for p, g in zip(parameters, gradients, strict=True)}
train_step = pytensor.function([x, label], loss, updates=updates, mode="ONNX")

losses = [
    float(train_step(images[batch], labels[batch]))
    for _ in range(20)
    for batch in np.split(rng.permutation(train), 30)
]

# %%
# The file holds the trained weights and has a name for the number of images.
program = export_onnx(
    [x],
    {"probability": nn.softmax(scores, axis=1)},
    "digits.onnx",
    dynamic_axes={"image": {0: "batch"}},
)
print(program)
session = onnxruntime.InferenceSession("digits.onnx")
(probability,) = session.run(None, {"image": images[test]})
print("accuracy", np.mean(probability.argmax(axis=1) == labels[test]).round(3))

# %%
# The loss during training, and predictions for six images that were not trained on.
fig = plt.figure(figsize=(10, 3.5), layout="constrained")
left, right = fig.subfigures(1, 2)
ax = left.subplots()
ax.semilogy(losses)
ax.set_xlabel("step")
ax.set_ylabel("loss")
for ax, i in zip(right.subplots(2, 3).flat, range(6), strict=True):
    ax.imshow(images[test[i]].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{probability[i].argmax()}: {probability[i].max():.0%}")
    ax.axis("off")
plt.show()

# %%
# A network of this kind runs in `a page of this site <../demos/digits/index.html>`__: draw a digit.
