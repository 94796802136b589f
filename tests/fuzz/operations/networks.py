"""Operations of neural networks on small shapes."""

import numpy as np

from tests.fuzz.graphs import Graph
from tests.fuzz.operations.inner import has_gradients
from tests.fuzz.operations.registry import WIDE, floats, operation
from tests.fuzz.terms import Term

UNARY = (
    *("relu", "elu", "selu", "celu", "gelu", "sigmoid", "silu", "softplus", "softsign", "mish"),
    *("hard_sigmoid", "hard_swish", "hard_tanh", "leaky_relu", "thresholded_relu"),
)
WITH_OPTIONS = (
    "leaky_relu({x}, alpha=0.3)",
    "elu({x}, alpha=0.7)",
    "celu({x}, alpha=1.3)",
    "gelu({x}, approximate='tanh')",
    "swish({x}, 1.7)",
    "softmax({x}, axis=-1)",
    "log_softmax({x}, axis=-1)",
)
# docs/how-to/networks.md: in float32 their absolute error is small.
WITHOUT_TAILS = ("sigmoid", "silu", "swish", "gelu")
WITHOUT_SMALL_VALUES = ("elu", "selu", "celu")


@operation
def activation(g: Graph) -> str | None:
    x = g.term(floats(g), rank=range(1, 5))
    if g.choices.below(3):
        code = f"{g.choices.of(UNARY)}({x})"
    elif x.value.size == 0:
        return None  # PyTensor's softmax in Python fails, its others and ONNX do not.
    else:
        code = g.choices.of(WITH_OPTIONS).format(x=x)
    inaccurate: tuple[str, ...] = ()
    if x.dtype != "float64":
        inaccurate += WITHOUT_TAILS if (x.value < -2).any() else ()
        small = (x.value > -0.05) & (x.value < 0)
        inaccurate += WITHOUT_SMALL_VALUES if small.any() else ()
    return None if inaccurate and code.startswith(inaccurate) else f"nn.{code}"


def _image(g: Graph, rank: int) -> Term:
    """Return an array (N, C, *S) of a rank with channels and cells; the sizes are mostly new."""

    def fits(t: Term) -> bool:
        return 0 not in t.shape[1:] and all(size >= 2 for size in t.shape[2:])

    fitting = [t for t in g.terms if t.dtype in WIDE and t.ndim == rank and fits(t)]
    if fitting and g.choices.below(2):
        return g.choices.of(fitting)
    sizes = [g.choices.of((4, 5, 3, 6)) for _ in range(rank - 2)]
    shape = [g.choices.of((2, 1)), g.choices.of((2, 4, 1)), *sizes]
    return g.leaf(g.choices.of(("float32", "float64")), shape)


@operation
def prelu(g: Graph) -> str:
    x = _image(g, g.choices.of((3, 4)))
    return f"nn.prelu({x}, {g.leaf(x.dtype, [x.shape[1]])})"


@operation
def convolution(g: Graph) -> str:
    spatial = g.choices.of((2, 1))
    x = _image(g, 2 + spatial)
    channels = x.shape[1]
    groups = g.choices.of([n for n in (1, 2, channels) if channels % n == 0])
    taps = [g.choices.of((2, 3, 1)) for _ in range(spatial)]
    outputs = groups * g.choices.of((1, 2))
    transposed = g.choices.one_in(4)
    shape = [channels, outputs // groups] if transposed else [outputs, channels // groups]
    w = g.leaf(x.dtype, [*shape, *taps])
    bias = f", bias={g.leaf(x.dtype, [outputs])}" if g.choices.below(2) else ""
    stride, dilation = g.choices.of((1, 2)), g.choices.of((1, 1, 2))
    if transposed:
        options = f"stride={stride}, padding={g.choices.below(2)}, dilation={dilation}"
        return f"nn.conv{spatial}d_transpose({x}, {w}, {options}, groups={groups}{bias})"
    mode = g.choices.of(("'valid'", "'half'", "'full'", "1", "2"))
    options = f"border_mode={mode}, subsample={stride}, filter_dilation={dilation}"
    flip = ", filter_flip=False" if g.choices.below(2) else ""
    return f"nn.conv{spatial}d({x}, {w}, {options}, num_groups={groups}{flip}{bias})"


@operation
def pool(g: Graph) -> str:
    x = _image(g, g.choices.of((4, 3)))
    if g.choices.one_in(4):
        return f"nn.global_{g.choices.of(('max', 'avg'))}_pool({x})"
    name = g.choices.of(("max_pool", "avg_pool", "lp_pool"))
    window = g.choices.of((2, 3))
    options = f"stride={g.choices.of((1, 2, 3))}, padding={g.choices.below(2)}"
    if g.choices.one_in(3):
        options += f", dilation={g.choices.of((1, 2))}"
    if g.choices.one_in(3):
        options += ", ceil_mode=True"
    if name == "avg_pool" and g.choices.below(2):
        options += ", count_include_pad=True"
    return f"nn.{name}({x}, {window}, {options})"


@operation
def normalisation(g: Graph) -> str:
    x = _image(g, g.choices.of((3, 4)))
    channels = x.shape[1]

    def channel() -> Term:
        # docs/project/limits.md: an infinite scale or bias gives NaN.
        return g.leaf(x.dtype, [channels], finite=True)

    kind = g.choices.below(5)
    if kind == 0:
        return f"nn.layer_norm({x}, axis={g.choices.of((-1, 1, -2))})"
    if kind == 1:
        return f"nn.rms_norm({x}, {g.leaf(x.dtype, x.shape[-1:])})"
    if kind == 2:
        groups = g.choices.of([n for n in (1, 2) if channels % n == 0])
        return f"nn.group_norm({x}, {groups}, {channel()}, {channel()})"
    if kind == 3:
        return f"nn.instance_norm({x}, {channel()}, {channel()})"
    statistics = f"{channel()}, pt.sqr({channel()}) + 0.5"
    return f"nn.batch_norm({x}, {channel()}, {channel()}, {statistics})"


@operation
def attention(g: Graph) -> str:
    dtype = g.choices.of(WIDE)
    heads, s, t, d = (g.choices.of(options) for options in ((2, 1), (3, 1, 4), (4, 3), (4, 2)))
    q, k, v = (g.leaf(dtype, shape) for shape in ((2, heads, s, d), *[(2, heads, t, d)] * 2))
    options = ", is_causal=True" if g.choices.one_in(3) else ""
    options += f", scale={g.choices.of((0.3, 1.0))}" if g.choices.one_in(3) else ""
    if g.choices.one_in(3):
        return f"nn.softmax(({q} @ {k}.mT) / np.sqrt({d}), axis=-1) @ {v}"
    return f"nn.attention({q}, {k}, {v}{options})"


@operation
def resizing(g: Graph) -> str | None:
    x = _image(g, g.choices.of((4, 3)))
    if not np.isfinite(x.value).all():
        return None  # docs/project/limits.md: infinite last cells stay infinite.
    mode = g.choices.of(("nearest", "linear"))
    return f"nn.upsample({x}, {g.choices.of((2, 3))}, mode={mode!r})"


@operation
def network_gradient(g: Graph) -> str | None:
    layers = [line for line in g.lines if line.code.startswith("nn.") and len(line.names) == 1]
    inputs = [t for t in g.inputs if t.dtype in WIDE]
    if not layers or not inputs or not has_gradients(g):
        return None
    result = g.choices.of(layers).names[0]
    wrt = ", ".join(map(str, g.choices.some(inputs)[:3]))
    return f"pt.grad(pt.sqr({result}).sum(), [{wrt}], disconnected_inputs='ignore')"
