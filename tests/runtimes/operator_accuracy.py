"""Measure the errors of elementwise operators in runtimes, over their whole domain.

uv run --all-extras --group runtimes python -m tests.runtimes.operator_accuracy [RUNTIME ...]

The errors go to the kernel tables of ONNX Runtime, OpenVINO and tract, whose targets replace
operators by them, and those of all runtimes to a section of docs/reference/runtimes.md.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import mpmath
import numpy as np
import onnx
from mpmath import mpf
from onnx import helper

from tests.runtimes.results import NAMES, ROOT, run_files

TABLES = ROOT / "src" / "pytensor_onnx" / "targets"
PAGE = ROOT / "docs" / "reference" / "runtimes.md"
DTYPES = ("float32", "float64")
_SHOWN = ("onnxruntime", "onnx", "openvino", "tract", "cv2", "MNN")
"""Runtimes that take no minutes to compile the 60 files."""
START, END = "## Accuracy of operators\n", "<!-- end of accuracy -->\n"
INTRODUCTION = f"""{START}
Largest errors of operators in float32 and float64, in units in the last place, at arguments from
denormal to huge ones: ±40, ±700, zeros of sines, and many between. An error that the rounding of an
argument explains does not count, nor does one below 16 times the least normal number. *Lost*
results have no digit, and `-` is a refusal. The kernel tables of ONNX Runtime, OpenVINO and tract
have these errors. Where one of them is above {{limit}}, a portable file has other operators;
activations of `nn` keep theirs as long as the absolute error is small.
`python -m tests.runtimes.operator_accuracy` writes this table.
"""
_FLOOR = 16
"""Multiple of the least normal number below which results may be rounded to zero."""
_LARGEST = {"float32": 1e30, "float64": 1e300}
"""Largest arguments: intermediate results of right formulas may overflow beyond."""


def _where_small(function: Callable, limit: Callable) -> Callable:
    """Return a function that mpmath computes below 2,000, where the limit takes its place."""
    return lambda x: function(x) if abs(x) < 2000 else limit(x)


def _selu(x: mpf) -> mpf:
    alpha, gamma = (mpf(float(np.float32(c))) for c in (1.6732632423543772, 1.0507009873554805))
    return gamma * (x if x > 0 else alpha * mpmath.expm1(max(x, mpf(-2000))))


def _above_zero(x: mpf) -> mpf:
    return max(x, mpf(0))


def _step(x: mpf) -> mpf:
    return mpf(x > 0)


_EXPONENTIAL = _where_small(mpmath.exp, lambda x: mpmath.inf if x > 0 else mpf(0))
_ELU = _where_small(lambda x: x if x > 0 else mpmath.expm1(x), lambda x: max(x, mpf(-1)))
_SIGMOID = _where_small(lambda x: 1 / (1 + mpmath.exp(-x)), _step)
_SOFTPLUS = _where_small(lambda x: mpmath.log1p(mpmath.exp(x)), _above_zero)

REFERENCES: dict[str, Callable[[mpf], mpf]] = {
    "Acos": mpmath.acos,
    "Acosh": mpmath.acosh,
    "Asin": mpmath.asin,
    "Asinh": mpmath.asinh,
    "Atan": mpmath.atan,
    "Atanh": mpmath.atanh,
    "Celu": _ELU,
    "Cos": mpmath.cos,
    "Cosh": _where_small(mpmath.cosh, lambda x: mpmath.inf),
    "Elu": _ELU,
    "Erf": _where_small(mpmath.erf, mpmath.sign),
    "Exp": _EXPONENTIAL,
    "Gelu": _where_small(lambda x: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2, _above_zero),
    "HardSwish": lambda x: x * max(mpf(0), min(mpf(1), x / 6 + mpf(1) / 2)),
    "Log": mpmath.log,
    "LogSoftmax": lambda x: -_SOFTPLUS(-x),
    "Mish": _where_small(lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), _above_zero),
    "Pow": lambda x: mpmath.power(x, mpf("-1.5")),
    "Reciprocal": lambda x: 1 / x,
    "Selu": _selu,
    "Sigmoid": _SIGMOID,
    "Sin": mpmath.sin,
    "Sinh": _where_small(mpmath.sinh, lambda x: mpmath.sign(x) * mpmath.inf),
    "Softmax": _SIGMOID,
    "Softplus": _SOFTPLUS,
    "Softsign": lambda x: x / (1 + abs(x)),
    "Sqrt": mpmath.sqrt,
    "Tan": mpmath.tan,
    "Tanh": _where_small(mpmath.tanh, mpmath.sign),
}
"""Operators of one argument; Pow has the exponent -1.5, and a softmax a second element of zero."""
_PAIRED = ("LogSoftmax", "Softmax")
_OPSETS = {"Gelu": 20}
_DOMAINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "Log": lambda x: x > 0,
    "Sqrt": lambda x: x > 0,
    "Pow": lambda x: x > 0,
    "Asin": lambda x: np.abs(x) <= 1,
    "Acos": lambda x: np.abs(x) <= 1,
    "Atanh": lambda x: np.abs(x) < 1,
    "Acosh": lambda x: x >= 1,
}


def arguments(op_type: str, dtype: str) -> np.ndarray:
    """Return arguments in the domain of an operator, from denormal to huge ones of both signs."""
    info = np.finfo(dtype)
    low, high = float(info.smallest_subnormal) * 8, _LARGEST[dtype]
    positive = [
        np.linspace(0.01, 10, 60),
        [12, 15, 17, 19, 25, 30, 37, 40, 60, 80, 87, 89, 100, 104, 300, 700, 709, 710, 744],
        np.geomspace(low, high, 60),
        1 + info.eps * np.array([-8, -0.5, 1, 8]),
        np.arange(1, 12) * np.pi / 2,
    ]
    x = np.concatenate(positive)
    with np.errstate(all="ignore"):
        x = np.unique(np.concatenate([x, -x]).astype(dtype))
    return x[_DOMAINS.get(op_type, np.isfinite)(x)]


def error_of(
    found: Sequence[float], x: np.ndarray, reference: Callable[[mpf], mpf]
) -> tuple[float, float]:
    """Return the largest error in units in the last place, and relative to one or the result.

    Parts that rounding the argument explains are left out.
    """
    info = np.finfo(x.dtype)
    unit, floor, largest = float(info.eps), _FLOOR * float(info.tiny), float(info.max)
    ulps = absolute = 0.0
    for y, argument in zip(found, map(float, x), strict=True):
        # Huge arguments of sines need as many bits as their exponent.
        with mpmath.workprec(150 + max(0, math.frexp(argument)[1])):
            exact, *beside = (reference(mpf(argument) * (1 + s * mpf(unit))) for s in (0, 1, -1))
            # Beside the ends of a domain there is nothing.
            beside = [b for b in beside if isinstance(b, mpf) and not mpmath.isnan(b)] or [exact]
            if abs(exact) > largest * 0.99:
                continue
            spread = max(abs(b - exact) for b in beside)
            if not math.isfinite(y):
                return math.inf, math.inf
            error = max(mpf(0), abs(mpf(float(y)) - exact) - max(spread, floor))
            ulps = max(ulps, float(error / max(abs(exact), floor) / unit))
            absolute = max(absolute, float(error / max(abs(exact), 1)))
    return ulps, absolute


def measure(runtime: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the errors of the operators in a runtime, by operator and dtype, where it has them."""
    trials = [(op_type, dtype) for op_type in REFERENCES for dtype in DTYPES]
    with tempfile.TemporaryDirectory() as folder:
        for op_type, dtype in trials:
            _write(op_type, dtype, Path(folder))
        _, answers = run_files(runtime, [f"{o}_{d}" for o, d in trials], Path(folder))
        found: dict[str, dict[str, tuple[float, float]]] = {}
        for op_type, dtype in trials:
            path = Path(folder, f"{op_type}_{dtype}.found.npz")
            if not answers[f"{op_type}_{dtype}"] and path.exists():
                (y,) = np.load(path).values()
                y = y.reshape(-1, 2)[:, 0] if op_type in _PAIRED else y.ravel()
                x = arguments(op_type, dtype)
                errors = error_of(y, x, REFERENCES[op_type])
                found.setdefault(op_type, {})[dtype] = errors
    return found


def _write(op_type: str, dtype: str, folder: Path) -> None:
    """Write the file of an operator and its arguments."""
    x = arguments(op_type, dtype)
    if op_type in _PAIRED:
        x = np.stack([x, np.zeros_like(x)], axis=1)
    elem_type = helper.np_dtype_to_tensor_dtype(x.dtype)
    operands = ["x", "exponent"][: 1 + (op_type == "Pow")]
    exponent = onnx.numpy_helper.from_array(np.array(-1.5, dtype), "exponent")
    graph = helper.make_graph(
        [helper.make_node(op_type, operands, ["y"])],
        "accuracy",
        [helper.make_tensor_value_info("x", elem_type, x.shape)],
        [helper.make_tensor_value_info("y", elem_type, x.shape)],
        [exponent] * (op_type == "Pow"),
    )
    opsets = [helper.make_opsetid("", _OPSETS.get(op_type, 18))]
    onnx.save(
        helper.make_model(graph, opset_imports=opsets, ir_version=10),
        folder / f"{op_type}_{dtype}.onnx",
    )
    np.savez(folder / f"{op_type}_{dtype}.npz", x=x)


def write_table(runtime: str, errors: Mapping[str, Mapping[str, tuple[float, float]]]) -> None:
    """Write the errors into the kernel table of a runtime, for the dtypes that it has."""
    path = TABLES / f"kernels_{runtime}.json"
    text = path.read_text()
    kernels = json.loads(text)["kernels"]
    rows = []
    for op_type, by_dtype in errors.items():
        known = {name for names in kernels[op_type].values() for name in names.split()}
        row = {d: list(map(_rounded, e)) for d, e in by_dtype.items() if d in known}
        if row:
            rows.append(f"  {json.dumps(op_type)}: {json.dumps(row)}")
    text = re.sub(r',\n"accuracy": \{.*?\n\}(?=[,\n])', "", text, flags=re.DOTALL)
    section = ',\n"accuracy": {\n' + ",\n".join(rows) + "\n}"
    path.write_text(text.rstrip().removesuffix("}").rstrip() + section + "\n}\n")


def _rounded(number: float) -> float:
    return 1e300 if math.isinf(number) else float(f"{number:.2g}")


def section(found: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]]) -> str:
    """Return the section of the page, of the errors by runtime, operator and dtype."""
    from pytensor_onnx.targets.profiles import COARSE

    def lines() -> Iterator[str]:
        yield f"| operator | {' | '.join(NAMES[name] for name in found)} |"
        yield f"|---|{'---|' * len(found)}"
        for op_type in REFERENCES:
            cells = (" / ".join(_cell(f, op_type, d) for d in DTYPES) for f in found.values())
            yield f"| {op_type} | {' | '.join(cells)} |"

    return INTRODUCTION.format(limit=COARSE) + "\n" + "\n".join(lines()) + f"\n\n{END}"


def _cell(found: Mapping[str, Mapping[str, tuple[float, float]]], op_type: str, dtype: str) -> str:
    if dtype not in found.get(op_type, {}):
        return "-"
    ulps, _ = found[op_type][dtype]
    return "lost" if ulps > 0.1 / np.finfo(dtype).eps else f"{ulps:.2g}"


def main() -> None:
    """Measure the runtimes that are named, or all that are installed, and write tables and page."""
    runtimes = sys.argv[1:] or [name for name in _SHOWN if find_spec(name)]
    found = {}
    for runtime in runtimes:
        found[runtime] = measure(runtime)
        if (TABLES / f"kernels_{runtime}.json").exists():
            write_table(runtime, found[runtime])
    text = section(found)
    if sys.argv[1:]:
        print(text)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text((before if rest else page + "\n") + text + after, encoding="utf-8")


if __name__ == "__main__":
    main()
