"""
YOLO11n, a detector of objects
==============================

The whole network, with 2.6 million parameters and the decoding of its boxes, is written in PyTensor
and becomes one file.
"""

# %%
# The modules of ``examples/yolo11n`` build the network. Its published weights are not part of this
# package: here it has the weights that training begins with, and ``export(weights="yolo11n.npz")``
# takes yours.
import sys
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime

examples = Path.cwd().parent
sys.path[:0] = [str(examples / "yolo11n"), str(examples / "web" / "yolo11n")]

from export import export
from shapes import shapes

program = export("yolo11n.onnx", size=(192, 192), raw_heads=True, verify=False)
print(program)

# %%
# Batch norms are part of the convolutions before them, and no operator of PyTensor's decomposition
# is left over.
print(Counter(node.op_type for node in program.model.graph).most_common(8))

# %%
# ONNX Runtime alone computes the maps of three scales and the decoded boxes.
images, _ = shapes(1, 192, np.random.default_rng(7), least=5, most=5)
session = onnxruntime.InferenceSession("yolo11n.onnx")
boxes, *maps = session.run(["output0", "p3", "p4", "p5"], {"images": images})
print(boxes.shape)

# %%
# Each scale sees the image in cells of 8, 16 and 32 pixels. The colour is the strength of the
# response of a cell; the scores of an untrained network are all near one percent.
fig, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
axes[0].imshow(images[0].transpose(1, 2, 0))
axes[0].set_title("image")
for axis, values, stride in zip(axes[1:], maps, (8, 16, 32), strict=True):
    strength = np.linalg.norm(values[0] - values[0].mean(axis=(1, 2), keepdims=True), axis=0)
    axis.imshow(strength)
    axis.set_title(f"cells of {stride} pixels")
for axis in axes:
    axis.set_axis_off()
plt.show()

# %%
# A `page that finds shapes <https://github.com/pytensor-onnx/pytensor-onnx/tree/main/examples/web>`__
# trains the network for some minutes, and runs it in the browser with the selection of boxes.
