"""The rooms of the package: what each holds, which others it may know, and its families."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """A module or folder of the package, with the rooms that its modules may import."""

    holds: str
    knows: frozenset[str] = frozenset()


def room(holds: str, *knows: str) -> Room:
    return Room(holds, frozenset(knows))


ANYWHERE = {
    "changes",
    "compat",
    "errors",
    "_version",
    "late_names",
    "progress",
    "user_code",
    "rules",
    "site_pages",
}
"""Rooms that all may import, and that import none of the others."""

ROOMS = {
    "operators": room("facts of the operators of ONNX: schemas, shapes, elements, costs"),
    "graph": room(
        "ONNX graphs as they are built: nodes, constants, names, functions",
        *("digests", "operators"),
    ),
    "targets": room("runtimes: their opsets, kernels and defects", "graph", "operators"),
    "encodings": room(
        "tensors that stand for other values: generators, complex numbers, sparse matrices",
        *("named_dims", "random", "digests"),
    ),
    "ops": room("Ops that PyTensor lacks", "graph", "encodings", "operators"),
    "functions": room("definitions: PyTensor expressions for Ops that ONNX lacks", "ops"),
    "named_dims": room("arrays with named axes, `pytensor.xtensor`"),
    "prng": room("JAX's random numbers", "functions", "ops"),
    "random": room("`random_source`, a generator as an input", "bit_generators"),
    "bit_generators": room("the state of a generator in NumPy"),
    "digests": room("digests of arrays"),
    "rewriting": room(
        "changes of the PyTensor graph before the conversion",
        *("functions", "ops", "encodings", "named_dims"),
    ),
    "passes": room(
        "changes of the ONNX model: smaller, faster, exact on a target",
        *("graph", "targets", "digests", "operators"),
    ),
    "dispatch": room(
        "lowerings: the ONNX operators of an Op",
        *("graph", "ops", "functions", "encodings", "rewriting", "named_dims", "operators"),
    ),
    "dynamic_axes": room(
        "names of axes whose sizes are known at run time", "graph", "named_dims", "operators"
    ),
    "conversion": room(
        "a PyTensor graph as a model: inputs, outputs, names, metadata",
        *("graph", "dispatch", "dynamic_axes", "digests", "operators"),
    ),
    "pipeline": room(
        "the passes over a model, in order",
        *("conversion", "dispatch", "graph", "operators", "passes", "targets"),
    ),
    "running": room(
        'mode `"ONNX"`: linker, sessions, errors of a run, profiles',
        *("graph", "dispatch", "rewriting", "conversion", "pipeline", "passes", "operators"),
        *("targets", "named_dims", "encodings", "kernels", "native", "registered_mode", "ops"),
    ),
    "native": room("the native library of kernels, which ONNX Runtime loads", "graph"),
    "kernels": room(
        "fused kernels: regions that run in the library",
        *("graph", "operators", "passes", "native"),
    ),
    "nn": room("functions of networks for users", "ops"),
    "ml": room(
        "pytensor-ml: models, decoding, its layers",
        *("ops", "nn", "dynamic_axes", "rewriting"),
    ),
    "backend": room("PyTensor as a backend of ONNX, `onnx.backend.base`", "importing"),
    "importing": room(
        "ONNX models as PyTensor graphs: reading, operators",
        *("graph", "operators", "ops", "functions", "nn", "prng", "rewriting"),
    ),
    "pictures": room("pictures of graphs", "graph", "operators"),
    "exporting": room(
        "exports: requests, verification, the program, files",
        *("graph", "rewriting", "conversion", "pipeline", "targets", "running", "ml"),
        *("dynamic_axes", "named_dims", "encodings", "operators", "ops", "digests", "passes"),
        *("importing", "web", "pictures"),
    ),
    "pymc": room(
        "PyMC models: densities, predictors, samplers",
        *(
            "digests",
            "dispatch",
            "exporting",
            "functions",
            "graph",
            "operators",
            "ops",
            "rewriting",
            "running",
        ),
        "named_dims",
    ),
    "catalogue": room(
        "probability as functions",
        *("conversion", "exporting", "functions", "operators", "prng", "targets"),
    ),
    "scoring": room("tables scored by files; hands on `pytensor_onnx_scoring`"),
    "web": room(
        "the page around a model, and a server for it", "graph", "kernels", "native", "operators"
    ),
    "serving": room("folders that servers of models load", "exporting", "graph", "native"),
    "cli": room(
        "the command line",
        *("dispatch", "exporting", "functions", "graph", "kernels", "native", "pymc", "web"),
        *("registered_mode", "serving", "pictures", "catalogue", ""),
    ),
    "registered_mode": room("registers mode ONNX with PyTensor, which loads at its first use"),
    "__main__": room("`python -m pytensor_onnx`"),
    "": room(
        "the public names",
        *("dispatch", "exporting", "functions", "importing", "registered_mode"),
        *("rewriting", "running"),
    ),
}
"""All rooms but `ANYWHERE`; the empty name is the package itself."""

GROUPS = {
    "exporting": ("requests", "verification", "program", "files"),
}
"""For some rooms their folders; a folder's modules import those of folders before it only."""

FAMILIES = {
    "elementwise": "operations on each element, constants and dtypes",
    "reductions": "sums, extrema and cumulative operations",
    "shape": "shapes, sizes, joins and the creation of arrays",
    "indexing": "reading and writing of elements",
    "sorting": "sorting and searching",
    "products": "products of vectors and matrices",
    "linalg": "linear algebra, diagonals and triangles",
    "special": "special functions",
    "loops": "scans, recurrences and searches of optimizers",
    "control_flow": "branches and checks",
    "networks": "layers of neural networks",
    "random": "draws, generators and distributions",
    "signal": "convolutions of signals and Fourier transforms",
    "sparse": "sparse matrices",
    "complex": "complex numbers",
}
"""Families of operations: the modules and folders of each layer."""

LAYERS = {
    "operators": ("dims", "entries", "facts", "inference", "schemas"),
    "ops": ("encoded",),
    "functions": ("operation", "registry"),
    "rewriting": ("engine", "query"),
    "dispatch": ("registry",),
    "importing": ("registry",),
}
"""Rooms whose children are families, with the children about no family: ground floors and roofs."""
