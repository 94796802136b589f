"""
A published network that learns another task
============================================

`magika <https://pypi.org/project/magika/>`__ is a network of the Python package index that tells
the type of a file from its bytes. Its last layers learn to tell tests from other Python files, in
PyTensor, in ONNX Runtime and in a page.
"""

# %%
# The network takes the first and the last 1,024 bytes of a file. The layer norm before its last
# layer has 512 numbers, which are the features of the new task. ``pytensor-onnx inspect --nodes``
# lists the names of such values.
from pathlib import Path

import magika
import matplotlib.pyplot as plt
import numpy as np
import pytensor
import pytensor.tensor as pt
import scipy
from pytensor.graph.replace import clone_replace

from pytensor_onnx import export_onnx, export_training_step, from_onnx, nn

NETWORK = Path(magika.__file__).parent / "models" / "standard_v3_3" / "model.onnx"
LAYERS = "jax2tf_get_logits_/pjit_get_logits_/MagikaV2/"
POOLED, FEATURES = f"{LAYERS}Max_Squeeze__213:0", f"{LAYERS}LayerNorm_1/AddV2_1:0"


def as_bytes(path):
    """Return the beginning and the end of a file, as the network takes them."""
    data = path.read_bytes().strip()
    row = np.full(2048, 256, "int32")
    first, last = (np.frombuffer(part, "uint8") for part in (data[:1024], data[-1024:]))
    row[: len(first)], row[2048 - len(last) :] = first, last
    return row


rng = np.random.default_rng(0)
files = [
    path
    for package in (np, scipy)
    for path in Path(package.__file__).parent.rglob("*.py")
    if path.stat().st_size > 200
]
is_test = np.array([path.name.startswith("test_") for path in files])
chosen = rng.permutation(
    np.concatenate([rng.choice(np.flatnonzero(is_test == kind), 150) for kind in (True, False)])
)
rows = np.stack([as_bytes(files[i]) for i in chosen])
labels = is_test[chosen].astype("int64")

# %%
# The convolutions keep their weights, so that their results are computed once. ``outputs`` ends the
# graph within the file.
body = from_onnx(NETWORK, outputs=[POOLED])
convolve = pytensor.function(body.inputs, body.outputs, mode="ONNX")
pooled = np.concatenate([convolve(part)[0] for part in np.array_split(rows, 10)])

# %%
# The layers behind them begin at a variable in place of that value. A pattern of names makes the
# weights of the layer norm shared variables; a new last layer has two classes. The layers read the
# number of files from the bytes, whose values they do not take.
x, label = pt.matrix("pooled", shape=(None, 512), dtype="float32"), pt.lvector("label")
rows_alone = pt.zeros((x.shape[0], 2048), "int32")
top = from_onnx(
    NETWORK,
    {POOLED: x, "bytes": rows_alone},
    outputs=[FEATURES],
    trainable=["*/LayerNorm_1/*"],
)
weights = {name.rsplit("/", 1)[1]: w for name, w in top.weights.items() if hasattr(w, "get_value")}
for name, weight in zip(("scale", "shift"), weights.values(), strict=True):
    weight.name = name
head = pytensor.shared(np.zeros((512, 2), "float32"), name="head")
scores = top.outputs[0] @ head
loss = -nn.log_softmax(scores, 1)[pt.arange(label.shape[0]), label].mean()


def momentum(learning_rate):
    def rule(loss, parameters):
        updates = {}
        for p, g in zip(parameters, pt.grad(loss, parameters), strict=True):
            velocity = pytensor.shared(
                np.zeros_like(p.get_value()), name=f"{p.name}_velocity", shape=p.type.shape
            )
            updates[velocity] = np.float32(0.9) * velocity - learning_rate * g
            updates[p] = p + updates[velocity]
        return updates

    return rule


# %%
# One file has the loss, the gradients of the two weights and the head, and the optimiser. It
# trains where ONNX Runtime runs.
trained = [*weights.values(), head]
starts = [variable.get_value() for variable in trained]
step = export_training_step(loss, trained, momentum, inputs=[x, label], path="step.onnx")
print(step)
losses = []
for _ in range(150):
    batch = rng.integers(0, 200, 32)
    losses.append(float(step(pooled[batch], labels[batch], np.float32(0.02))))

# %%
# The trained weights go back to their variables, and body, layer norm and head are one file again,
# from bytes to the probability of a test. It is compared with PyTensor on the bytes of files.
for variable in trained:
    variable.set_value(step.state[variable.name])
probability = nn.softmax(clone_replace(scores, {x: body.outputs[0]}), 1)[:, 1]
program = export_onnx(
    body.inputs,
    {"is_test": probability},
    "is_test.onnx",
    dynamic_axes={"bytes": {0: "files"}},
    example_inputs=[rows[:4]],
)
found = program(rows[200:])
print(f"{np.mean((found > 0.5) == labels[200:]):.0%} of 100 files that it did not learn from")
fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
axes[0].semilogy(losses)
axes[0].set(xlabel="step", ylabel="loss")
for kind, name in ((0, "other files"), (1, "tests")):
    axes[1].hist(found[labels[200:] == kind], np.linspace(0, 1, 21), alpha=0.6, label=name)
axes[1].set(xlabel="probability of a test", ylabel="files")
axes[1].legend()
plt.show()

# %%
# A page trains as well. Its file has the data of 200 files, so that the learning rate is its only
# input; a button runs ten steps, and the weights can be saved. The page is one HTML file.
for variable, start in zip(trained, starts, strict=True):
    variable.set_value(start)
known = {x: pt.constant(pooled[:200]), label: pt.constant(labels[:200])}
other = {x: pt.constant(pooled[200:]), label: pt.constant(labels[200:])}
is_right = pt.eq(pt.argmax(scores, axis=1), label)
right = pt.mean(clone_replace(is_right, other)).copy("right")
in_page = export_training_step(
    clone_replace(loss, known), trained, momentum, inputs=[], extra_outputs=[right]
)
page = in_page.page(
    title="Is it a test?",
    repeat=10,
    inputs={
        "learning_rate": {
            "min": 0,
            "max": 0.05,
            "step": 0.005,
            "value": 0.02,
            "label": "Learning rate",
        }
    },
    outputs={
        "loss": {"kind": "trace", "label": "Loss"},
        "right": {"label": "Right, of 100 other files"},
    },
)
print(page.save("training.html").stat().st_size, "bytes")
