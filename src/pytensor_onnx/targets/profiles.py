"""The runtimes that models can be made for, and what was measured of them."""

from dataclasses import replace

import onnx_ir as ir

from pytensor_onnx.targets.profile import Profile

_SINGLE_AND_DOUBLE = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})

_DOUBLE = frozenset({ir.DataType.DOUBLE})

_FLOATS = frozenset({ir.DataType.FLOAT16, *_SINGLE_AND_DOUBLE})

_COARSE_BODIES = dict.fromkeys(("Elu", "Gelu", "HardSwish", "Mish", "Selu", "Softplus"), _DOUBLE)
"""Operators whose body in the standard subtracts numbers near one, or has float32 factors."""

_STANDARD = Profile(
    name="standard",
    inaccurate=_COARSE_BODIES,
    refuses_zero_dim=frozenset(
        {
            "ArgMax",
            "ArgMin",
            "Compress",
            "Concat",
            "CumProd",
            "CumSum",
            "Gather",
            "GatherElements",
            "GatherND",
            "Hardmax",
            "LogSoftmax",
            "LpNormalization",
            "MatMul",
            "OneHot",
            "Pad",
            "ScatterElements",
            "ScatterND",
            "Slice",
            "Softmax",
            "Split",
            "TopK",
        }
    ),
)

_ONNXRUNTIME = replace(
    _STANDARD,
    name="onnxruntime",
    kernels="kernels_onnxruntime.json",
    inaccurate={
        **_COARSE_BODIES,
        "GroupNormalization": _FLOATS,
        "Sigmoid": _SINGLE_AND_DOUBLE,
        "Tanh": _DOUBLE,
        "Sin": _DOUBLE,
        "Cos": _DOUBLE,
    },
    computed_wider={"Sign": frozenset({ir.DataType.FLOAT16})},
    integer_reductions_through_double=frozenset(
        {"Einsum", "ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare"}
    ),
    int64_compared_by_halves=frozenset({"Clip", "Max", "Min", "ReduceMax", "ReduceMin", "Sign"}),
    integer_pow_through_double=True,
    expand_to_nothing_is_dropped=True,
    finds_window_on_short_axis=True,
    hangs_without_taps=True,
    range_indices_become_slice=True,
    empty_products_unwritten=True,
    fuses_products=True,
    drops_near_identities=True,
    pools_take_in_pads=True,
    integer_fmod_through_double=True,
    integer_range_through_double=True,
    integer_division_by_zero_fails=True,
    integer_division_overflow_kills=True,
    reductions_ignore_nan=frozenset({"ArgMax", "ArgMin", "ReduceMax", "ReduceMin"}),
    loses_nan=frozenset({"GlobalMaxPool", "MaxPool", "TopK", "Unique"}),
    log_softmax_loses_nan=frozenset({ir.DataType.DOUBLE}),
    unique_of_empty_slices_kills=True,
    clip_ignores_nan_bounds=True,
    refuses_empty=frozenset({"ArgMax", "ArgMin", "LayerNormalization", "Scan"}),
    refuses_empty_booleans=frozenset({"ReduceMax", "ReduceMin"}),
    empty_mean_is_zero=True,
    empty_loop_forgets_shape=True,
)

_WEB = replace(
    _ONNXRUNTIME,
    name="web",
    kernels="kernels_web.json",
    float_to_integer_saturates=True,
    refuses_defaults=True,
)

# The native runtime; its binding for Node.js passes on no value for an input that has a default.
_NODE = replace(_ONNXRUNTIME, name="node", refuses_defaults=True)

_PROFILES = {profile.name: profile for profile in (_ONNXRUNTIME, _WEB, _NODE, _STANDARD)}


def get_profile(name: str) -> Profile:
    """Return the profile of a runtime.

    Parameters
    ----------
    name
        ``"onnxruntime"`` (CPU), ``"web"`` (ONNX Runtime in WebAssembly), ``"node"``
        (onnxruntime-node, the CPU in Node.js) or ``"standard"``
        (whatever the ONNX standard allows).

    Raises
    ------
    ValueError
        There is no profile of that name.

    Examples
    --------
    >>> get_profile("standard").supports("Erf", ir.DataType.DOUBLE, 21)
    True
    """
    try:
        return _PROFILES[name]
    except KeyError:
        names = ", ".join(repr(known) for known in _PROFILES)
        raise ValueError(f"no target is called {name!r}; there are {names}") from None
