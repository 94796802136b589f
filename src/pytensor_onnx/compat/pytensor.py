"""What this package uses of PyTensor beyond its public interface, checked at import.

A private name stands here with the section of docs/project/upstream.md that asks PyTensor for a
public one in its place; all names were last compared with PyTensor 3.3.8. Passes that others are
placed before, rewrites that run under a condition, and rewrites that are left out are known by
their names: where one is renamed, a wrong rewrite would run again, so that `check` refuses such a
version.
"""

import inspect
import sys
import warnings
from collections.abc import Iterable
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytensor
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import Mode, optdb
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op, _NoPythonOp
from pytensor.link.basic import Linker
from pytensor.link.c.op import _NoPythonCOp

_BATCHES = "ops-declare-how-they-take-batches-by-private-names"
_PASSES = "passes-cannot-be-registered-before-another-one"
_CONFIG = "the-name-of-a-registered-mode-is-no-value-of-configmode"
_SIZES = "sizes-beside-a-zero-are-inferred-from-the-number-of-elements"
_FUNCTIONS = "a-linker-cannot-choose-the-class-of-its-functions"
_BACKENDS = "backends-need-private-names-of-ops-and-graphs"

PRIVATE = {
    "pytensor.compile.executor._pickle_Function": "a-subclass-of-function-cannot-be-pickled",
    "pytensor.graph.replace._vectorize_node": _BATCHES,
    "pytensor.graph.replace._vectorize_not_needed": _BATCHES,
    "pytensor.tensor.utils._parse_gufunc_signature": _BATCHES,
    "pytensor.tensor.rewriting.shape._is_shape_i_of_x": _SIZES,
    "pytensor.tensor.rewriting.shape._unpack_shape_vector": _SIZES,
    "pytensor.compile.mode.optdb.__position__": _PASSES,
    "pytensor.compile.mode.optdb.__db__": _PASSES,
    "pytensor.config._config_var_dict": _CONFIG,
    "pytensor.configparser.ConfigParam._apply": _CONFIG,
    "pytensor.compile.maker.FunctionMaker.create.self": _FUNCTIONS,
    "pytensor.tensor.blockwise.Blockwise._create_dummy_core_node": _BACKENDS,
    "pytensor.tensor.random.op.RandomVariable._infer_shape": _BACKENDS,
    "pytensor.tensor.basic.Alloc._runtime_broadcast_error_msg": _BACKENDS,
    "pytensor.graph.fg.FunctionGraph._compile_mode": _BACKENDS,
}
"""Private names, each with the section of docs/project/upstream.md after whose repair it can go."""

_missing: list[str] = []


def _private(name: str) -> Any:
    """Return one of `PRIVATE` from its module or class; a missing one is listed by `check`."""
    owner, _, last = name.rpartition(".")
    module, _, of_class = owner.rpartition(".")
    try:
        is_of_class = of_class[0].isupper()
        holder = getattr(import_module(module), of_class) if is_of_class else import_module(owner)
        return getattr(holder, last)
    except (ImportError, AttributeError):
        _missing.append(name)
        return None


pickle_function = _private("pytensor.compile.executor._pickle_Function")
vectorize_node = _private("pytensor.graph.replace._vectorize_node")
vectorize_not_needed = _private("pytensor.graph.replace._vectorize_not_needed")
parse_gufunc_signature = _private("pytensor.tensor.utils._parse_gufunc_signature")
is_shape_i_of_x = _private("pytensor.tensor.rewriting.shape._is_shape_i_of_x")
unpack_shape_vector = _private("pytensor.tensor.rewriting.shape._unpack_shape_vector")
core_node_of = _private("pytensor.tensor.blockwise.Blockwise._create_dummy_core_node")
shape_of_draw = _private("pytensor.tensor.random.op.RandomVariable._infer_shape")
message_of_alloc = _private("pytensor.tensor.basic.Alloc._runtime_broadcast_error_msg")


def position_before(anchor: str) -> tuple[float, float]:
    """Return the positions of the pass before a pass of PyTensor, and of the pass itself.

    Examples
    --------
    >>> start, end = position_before("canonicalize")
    >>> start < end
    True
    """
    positions = optdb.__position__
    end = positions[anchor]
    return max(p for p in positions.values() if p < end), end


def accept_in_config(name: str) -> None:
    """Add the name of a mode to the values that `pytensor.config.mode` takes."""
    parameter = pytensor.config._config_var_dict["mode"]
    accept = parameter._apply
    parameter._apply = lambda value: value if value == name else accept(value)


def set_compile_mode(fgraph: FunctionGraph, mode: Mode) -> None:
    """Let rewrites of a graph that is compiled by no function know its mode."""
    fgraph._compile_mode = mode


def calling_maker(linker: Linker) -> FunctionMaker | None:
    """Return the maker of functions that called a method of its linker, None if another did.

    Until PyMC derives its modes by `Mode.including`, which preserves `Mode.function_maker`:
    `pymc.compile` makes a plain `Mode` of the linker of a mode.
    """
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    maker = frame and frame.f_locals.get("self")
    return maker if isinstance(maker, FunctionMaker) and maker.linker is linker else None


def warn_if_compiled_by_nutpie() -> None:
    """Warn if PyMC asks for the linker of this mode to choose between NUMBA and JAX for nutpie.

    Until PyMC leaves the compilation of densities for nutpie to modes.
    """
    frame = sys._getframe(2)
    # A mode that loads at its first use has read the attribute for PyMC.
    if frame.f_code.co_name == "__getattribute__" and frame.f_back:
        frame = frame.f_back
    if frame.f_code.co_name != "_sample_external_nuts":
        return
    text = (
        "pm.sample(nuts_sampler='nutpie') compiles the density in mode NUMBA, and not in mode "
        "ONNX: call pytensor_onnx.pymc.sample, which takes the same arguments"
    )
    packages = [Path(file).parent.parent for file in (__file__, frame.f_code.co_filename)]
    warnings.warn(text, UserWarning, skip_file_prefixes=tuple(map(str, packages)))


def has_perform(op: Op) -> bool:
    """Return whether an Op has an implementation in Python."""
    return type(op).perform not in (_NoPythonOp.perform, _NoPythonCOp.perform)


def without_function(op: Op) -> Op:
    """Return an Op without the function of its inner graph, which later calls compile anew."""
    if not hasattr(op, "_fn"):
        return op
    own: Any = copy(op)
    own._fn = None
    result: Op = own
    return result


def check(anchors: Iterable[str], excluded: Iterable[str], guarded: Iterable[str]) -> None:
    """Raise unless this version of PyTensor has everything that this package knows by name.

    Parameters
    ----------
    anchors
        Passes that others are placed before.
    excluded
        Names and tags of rewrites that are left out.
    guarded
        Rewrites that run under a condition.

    Raises
    ------
    ImportError
        If a name is missing; the message lists all that are.

    Examples
    --------
    >>> check(["canonicalize"], ["BlasOpt"], ["local_pow_canonicalize"])
    """
    known = _names(optdb)
    missing = [
        *_missing,
        *(f"the pass {name}" for name in anchors if name not in optdb.__position__),
        *(f"the rewrite {name}" for name in (*excluded, *guarded) if name not in known),
    ]
    if missing:
        raise ImportError(
            f"pytensor {pytensor.__version__} lacks what pytensor-onnx uses of it: "
            f"{', '.join(missing)}. Install a version that the package allows: "
            "pip install 'pytensor>=3.3.5,<3.4'"
        )


def _names(database: Any) -> set[str]:
    """Return the names and tags of a database and of the databases in it."""
    names = set(database.__db__)
    for members in database.__db__.values():
        for member in members:
            if hasattr(member, "__db__"):
                names |= _names(member)
            elif hasattr(member, "db") and hasattr(member.db, "__db__"):
                names |= _names(member.db)
    return names
