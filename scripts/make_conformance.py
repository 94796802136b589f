"""Write the cases of the folder conformance/, from the catalogue and the random numbers.

python -m scripts.make_conformance
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytensor.tensor as pt
from onnx import numpy_helper
from onnx.inliner import inline_local_functions

from pytensor_onnx import export_onnx
from pytensor_onnx.catalogue.compile_entry import OPSET, compile_entry
from pytensor_onnx.catalogue.library import entries, model_of
from pytensor_onnx.catalogue.vectors import examples, expected
from pytensor_onnx.prng import (
    init_prng,
    random_integers,
    random_normal,
    random_uniform,
    split_prng,
)

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "conformance"
RELATIVE = {"float32": 1e-5, "float64": 1e-12}
FLOAT32 = (
    *("NormalLogProb", "NormalCdf", "NormalIcdf", "NormalLogSurvival"),
    *("GammaLogProb", "GammaCdf", "GammaLogProbGrad", "LaplaceIcdf"),
    *("WeibullMean", "VonMisesLogProb", "PoissonLogProb", "BinomialLogProb"),
    *("GeometricLogProb", "DirichletLogProb", "CategoricalLogProb", "MvNormalLogProb"),
    *("LogOddsForward", "IntervalInverse", "IntervalLogDet", "OrderedInverse", "SimplexInverse"),
    *("SimplexLogDet", "CholeskyCovPackedInverse", "GammaLn", "Erfinv", "Erfcx", "I0", "Expm1"),
    *("Cholesky", "SolveTriangular", "SkewNormalLogCdf", "CauchyIcdf", "LogLogisticIcdf"),
    *("PoissonIcdf", "LKJCholeskyLogProb", "GaussianRandomWalkLogProb"),
)
FLOAT64 = ("NormalLogProb", "NormalLogCdf", "GammaLogProb", "Log1p", "Erfc", "SimplexLogDet")
N = 64
SEED = 42


def keys() -> Any:
    """Return the two keys of a draw: for the next state, and for the numbers."""
    return jax.random.split(jax.random.key(SEED))


def draws() -> Iterator[tuple[str, Callable[[Any], Any], Any, float]]:
    """Yield cases of random numbers: name, results as variables, and those of JAX."""
    after, key = keys()
    data = np.asarray(jax.random.key_data(after)).astype("int64")
    with jax.enable_x64(True):
        uniform, wide, normal, whole = (
            np.asarray(x)
            for x in (
                jax.random.uniform(key, (N,), jnp.float32),
                jax.random.uniform(key, (N,), jnp.float64),
                jax.random.normal(key, (N,), jnp.float32),
                jax.random.randint(key, (N,), 0, 10, jnp.int32),
            )
        )
    yield "random_uniform_float32", lambda s: random_uniform(s, (N,)), (uniform, data), 0.0
    yield (
        "random_uniform_float64",
        lambda s: random_uniform(s, (N,), dtype="float64"),
        (wide, data),
        0.0,
    )
    yield "random_integers", lambda s: random_integers(s, (N,), 0, 10), (whole, data), 0.0
    # Errors of the inverse error function of JAX are up to 85 units in the last place.
    yield "random_normal_float32", lambda s: random_normal(s, (N,)), (normal, data), 1e-5


def states() -> Iterator[tuple[str, list[Any], Any, list[np.ndarray], list[np.ndarray]]]:
    """Yield cases of states: name, operands, results, and arrays of both."""
    seed, state = pt.lscalar("seed"), pt.tensor("state", dtype="int64", shape=(2,))
    first = np.array([0, SEED], "int64")
    yield "init_prng", [seed], init_prng(seed), [np.array(SEED)], [first]
    split = jax.random.split(jax.random.key(SEED), 3)
    parts = list(np.asarray(jax.random.key_data(split)).astype("int64"))
    yield "split_prng", [state], split_prng(state, 3), [first], parts
    folded = np.asarray(jax.random.key_data(jax.random.fold_in(jax.random.key(SEED), 7)))
    (made,) = split_prng(state, data=[7])
    yield "split_prng_by_data", [state], made, [first], [folded.astype("int64")]
    for name, make, (numbers, after), _ in draws():
        yield name, [state], list(make(state)), [first], [numbers, after]


def shortened(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model without names of nodes and provenance, with short names of inner values."""
    graph = model.graph
    names = {x.name: x.name for x in (*graph.input, *graph.output)}

    def short(name: str) -> str:
        return names.setdefault(name, f"v{len(names)}") if name else ""

    def rename(part: onnx.GraphProto) -> None:
        del part.value_info[:]
        for tensor in part.initializer:
            tensor.name = short(tensor.name)
        for value in (*part.input, *part.output):
            value.name = short(value.name)
        for node in part.node:
            node.input[:] = map(short, node.input)
            node.output[:] = map(short, node.output)
            node.ClearField("metadata_props")
            node.name = short(node.name) or f"n{len(names)}_{node.output[0]}"
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    rename(attribute.g)

    rename(graph)
    for value in graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.WhichOneof("value"):
                # Some runtimes take no sizes where a file has neither a size nor a name.
                dim.dim_param = f"{value.name}_{axis}"
    graph.name = "main_graph"
    if not model.functions:
        # Some runtimes refuse domains that they do not know, without a call of them.
        del model.opset_import[:]
        model.opset_import.append(onnx.helper.make_opsetid("", OPSET))
    for function in model.functions:
        for node in function.node:
            node.ClearField("metadata_props")
        function.ClearField("metadata_props")
    return model


def write(
    name: str, model: onnx.ModelProto, inputs: list[np.ndarray], outputs: list[np.ndarray]
) -> None:
    """Write the files of a case."""
    folder = FOLDER / name
    data = folder / "test_data_set_0"
    data.mkdir(parents=True)
    model = shortened(model)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, folder / "model.onnx")
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for i, array in enumerate(arrays):
            tensor = numpy_helper.from_array(np.asarray(array, order="C"))
            (data / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


def main() -> None:
    """Replace all cases."""
    for folder in FOLDER.iterdir():
        if folder.is_dir():
            shutil.rmtree(folder)
    cases: dict[str, dict[str, Any]] = {}
    bounds = {name: bound for name, _, _, bound in draws()}
    for name, operands, results, inputs, outputs in states():
        # Numbers of float32 need no float64, which some runtimes lack.
        precision = None if "float64" in name else "float32"
        program = export_onnx(
            operands, results, target="portable", precision=precision, verify=False
        )
        model = program.proto
        model.ClearField("metadata_props")
        write(name, model, inputs, outputs)
        cases[name] = {"kind": "random numbers", "relative": bounds.get(name, 0.0)}
    by_name = {entry.name: entry for entry in entries()}
    for dtype, names in (("float32", FLOAT32), ("float64", FLOAT64)):
        for name in names:
            entry = by_name[name]
            operands = examples(entry, dtype)
            arrays = expected(entry, operands) or []
            outputs = [
                np.asarray(x, a.dtype_in(dtype)) for x, a in zip(arrays, entry.outputs, strict=True)
            ]
            case = f"{name}_{dtype}"
            model = model_of(compile_entry(entry, dtype))
            write(case, inline_local_functions(model), operands, outputs)
            cases[case] = {"kind": entry.family, "relative": RELATIVE[dtype]}
    for name in ("NormalLogProb", "GammaLogProb"):
        case = f"{name}_by_functions"
        source = FOLDER / f"{name}_float32"
        shutil.copytree(source, FOLDER / case)
        model = shortened(model_of(compile_entry(by_name[name], "float32")))
        onnx.save(model, FOLDER / case / "model.onnx")
        cases[case] = {"kind": "functions of a file", "relative": RELATIVE["float32"]}
    lines = [f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items()]
    (FOLDER / "cases.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    print(f"{len(cases)} cases, {size:,} bytes")


if __name__ == "__main__":
    main()
