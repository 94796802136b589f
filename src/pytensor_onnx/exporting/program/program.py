"""The exported program and its report."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir

from pytensor_onnx.changes import Change
from pytensor_onnx.errors import PyTensorONNXError, VerificationError
from pytensor_onnx.exporting.program.converting import weights_of
from pytensor_onnx.exporting.program.runner import Runner
from pytensor_onnx.exporting.program.selection import rename_axes, select_outputs
from pytensor_onnx.exporting.program.weight_files import (
    replace_weights,
    with_weights_as_inputs,
    without_origins,
    write_model,
)
from pytensor_onnx.exporting.requests.descriptions import describe
from pytensor_onnx.exporting.requests.state_files import write_state
from pytensor_onnx.exporting.verification.divergence import Conversion
from pytensor_onnx.exporting.verification.file_vectors import METADATA, Vectors
from pytensor_onnx.exporting.verification.results import ValueDifference, Verification
from pytensor_onnx.graph.file_parts import add_encoder, add_maps
from pytensor_onnx.graph.model_reading import EXAMPLES
from pytensor_onnx.graph.traversal import function_sizes, operator_counts
from pytensor_onnx.graph.weights import weight_bytes
from pytensor_onnx.progress import working
from pytensor_onnx.running.fingerprint import Fingerprint, fingerprint_of
from pytensor_onnx.running.session import SessionOptions, kernels_of

_LARGEST_EXAMPLE, _DIGITS_OF_EXAMPLE = 20_000, 5
"""Numbers of an example input that a page has, at most."""

if TYPE_CHECKING:
    from pytensor_onnx.pictures.graph_picture import Drawing
    from pytensor_onnx.web.single_file import Page


class ONNXProgram(Runner):
    """An exported model.

    Called with one array for each input, in order or by name, it returns the values of the PyTensor
    function, and keeps the state that the graph updates. `export_onnx` makes it.

    Several threads may call it. A copy, or a pickle, has a state of its own, and opens a session of
    its own when it is first called.

    Attributes
    ----------
    conversion : Conversion
        The model, and the graph that it was converted from.
    state : dict of str to ndarray
        Present values of the variables that the graph updates.
    verification : Verification
        Result of the last comparison with PyTensor.
    """

    def __init__(
        self,
        conversion: Conversion,
        providers: str | Sequence[str] = "cpu",
        session_options: SessionOptions | None = None,
    ) -> None:
        super().__init__(conversion, providers, session_options)
        self.verification = Verification()

    @property
    def model(self) -> ir.Model:
        """The model."""
        return self.conversion.model

    @property
    def target(self) -> str:
        """The runtime that the model is made for."""
        return self.conversion.target

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changes for the target."""
        return self.conversion.changes

    @property
    def losses(self) -> tuple[Change, ...]:
        """Errors that a lower precision brings, after a verification."""
        return self.verification.losses

    @property
    def proto(self) -> onnx.ModelProto:
        """The model as a protobuf message."""
        proto = ir.to_proto(self._file_model())
        for add in self._file_parts:
            add(proto)
        return proto

    @property
    def _file_parts(self) -> list[Callable[[onnx.ModelProto], None]]:
        """Functions that add the parts of a file that the model does not have."""
        request = self.conversion.request
        if request is None:
            return []
        parts: list[Callable[[onnx.ModelProto], None]] = []
        if request.maps:
            parts.append(lambda proto: add_maps(proto, request.maps))
        if request.encoder is not None:
            parts.append(lambda proto: add_encoder(proto, request.encoder.proto))
        return parts

    def _file_model(self) -> ir.Model:
        """Return the model as files have it."""
        request = self.conversion.request
        is_as_in_file = request is not None and request.is_as_in_file
        return without_origins(self.model) if is_as_in_file else self.model

    def save(
        self,
        path: str | os.PathLike,
        *,
        include_initializers: bool = True,
        vectors: bool = False,
    ) -> Path:
        """Write the model to a file, which appears complete or not at all.

        Weights of a model above 2 GB go to a second file beside it, ``<name>.data``.

        Parameters
        ----------
        path
            The file.
        include_initializers
            Whether the file has the arrays of ``program.weights``. Otherwise these are further
            inputs of it, and ``load(path, weights=program.weights)`` puts them back.
        vectors
            Whether the file has test vectors in its metadata: the example inputs of the export, or
            sampled ones, and PyTensor's results for them, with which ``pytensor-onnx verify``
            compares the results of the file.

        Returns
        -------
        pathlib.Path
            The file written.

        Raises
        ------
        VerificationError
            If PyTensor has no results to store, or other ones than the model.
        PyTensorONNXError
            If test vectors are wanted of a loaded file.

        Examples
        --------
        >>> import tempfile, pytensor.tensor as pt
        >>> from pytensor_onnx import export_onnx
        >>> x = pt.vector("x")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_onnx([x], x + 1).save(folder + "/model.onnx").name
        'model.onnx'
        """
        model = self._file_model()
        if not include_initializers:
            model = with_weights_as_inputs(model, self.weights)
        if vectors:
            model = model.clone()
            model.metadata_props[METADATA] = self._vectors().to_text()
        # Test vectors are inputs and results of the model, and not of strings and maps.
        return write_model(path, model, () if vectors else self._file_parts)

    def page(self, *, height: int = 640, **description: Any) -> Page:
        """Return a page that runs the model in the browser, without Python and without a server.

        It is one HTML file, which a notebook shows and ``program.page().save("page.html")`` writes.

        Parameters
        ----------
        height
            Pixels of the page in a notebook.
        description
            Description of the page, whose keys are those of the YAML file of ``pytensor-onnx web``:
            ``title``, ``text``, ``inputs``, ``outputs`` and so on.

        Raises
        ------
        NoTapeError
            If the kernels of pages do not cover the model.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> from pytensor_onnx import export_onnx
        >>> x = pt.vector("x")
        >>> page = export_onnx([x], pt.exp(x)).page(title="Growth")
        >>> "<title>Growth</title>" in page.text
        True
        """
        from pytensor_onnx.web.site import make_page

        with tempfile.TemporaryDirectory() as folder:
            file = self.save_for_page(Path(folder, "model.onnx"))
            state = write_state(Path(folder, "state.npz"), self.state, 0) if self.state else None
            return make_page(file, page=description, state=state, height=height)

    def save_for_page(self, path: str | os.PathLike) -> Path:
        """Write the model to a file, with the example inputs of the export for its page."""
        request, model = self.conversion.request, self.model
        given = request.examples if request is not None else None
        if given is not None:
            model = model.clone()
            arrays = {str(v.name): np.asarray(x) for v, x in zip(self.inputs, given, strict=False)}
            model.metadata_props[EXAMPLES] = json.dumps(
                {
                    name: {"dims": list(x.shape), "numbers": _in_few_digits(x)}
                    for name, x in arrays.items()
                    if x.size <= _LARGEST_EXAMPLE
                    and x.dtype.kind in "iufb"
                    and np.isfinite(x).all()
                }
            )
        return write_model(path, model)

    def draw(self) -> Drawing:
        """Return a picture of the graph, which a notebook shows.

        Boxes are operators, functions and loops, with their small constants, and the names and
        shapes of weights; below each stand dtype and shape of its result. Graphs of more than 40
        nodes are drawn by blocks, equal ones once.

        Returns
        -------
        Drawing
            The picture: ``str(picture)`` is its SVG, and ``picture.save("graph.svg")`` writes it.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> from pytensor_onnx import export_onnx
        >>> x = pt.vector("x")
        >>> picture = export_onnx([x], {"total": pt.exp(x).sum()}).draw()
        >>> [name in str(picture) for name in ("Exp", "ReduceSum", "total")]
        [True, True, True]
        """
        from pytensor_onnx.pictures.graph_picture import draw_graph

        return draw_graph(self.model, self.conversion.lines)

    def _vectors(self) -> Vectors:
        from pytensor_onnx.exporting.verification.making_vectors import make_vectors

        request = self.conversion.request
        if request is None:
            raise PyTensorONNXError("a loaded file has no PyTensor graph that computes vectors")
        examples = [] if request.examples is None else [request.examples]
        return make_vectors(self.conversion, self.session_of_file, examples)

    def select(self, outputs: str | Sequence[str]) -> ONNXProgram:
        """Return a program of some of the outputs, and of the inputs that these depend on.

        A call of it computes nothing else, whereas ONNX Runtime computes all outputs of a file,
        whichever it returns.

        Parameters
        ----------
        outputs
            Names of outputs, or the name of the one whose value is returned by itself.

        Raises
        ------
        ArgumentError
            If there is no such output.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> from pytensor_onnx import compile_onnx
        >>> x, y = pt.vector("x"), pt.scalar("y")
        >>> program = compile_onnx([x, y], {"total": x.sum(), "product": x * y})
        >>> program.select("total")
        ONNXProgram(x: float64[x_dim0] -> total: float64[])
        >>> program.select("total")([1.0, 2.0])
        array(3.)
        """
        selected = self._of(select_outputs(self.conversion, outputs))
        selected.verification = self.verification
        return selected

    @property
    def weights(self) -> dict[str, np.ndarray]:
        """The stored arrays by name, such as values of shared variables; none of a loaded file."""
        return {name: weight.data for name, weight in weights_of(self.conversion.reference).items()}

    def replace_weights(self, weights: Mapping[str, Any], *, verify: bool = True) -> ONNXProgram:
        """Return a program with other values of stored arrays.

        The graph is converted again, since constants of the file may be computed from the arrays.
        The state stays as it is: its variables are set by ``program.state[name] = array``.

        Parameters
        ----------
        weights
            Arrays by the names that ``program.weights`` has, of the same shapes, in dtypes that
            lose no digits.
        verify
            Whether to verify the new program, on the example inputs of the export.

        Raises
        ------
        ArgumentError
            If there is no such weight, or an array does not fit; the message has all of them.
        PyTensorONNXError
            For the program of a loaded file.

        Examples
        --------
        >>> import pytensor, pytensor.tensor as pt
        >>> from pytensor_onnx import export_onnx
        >>> x, w = pt.vector("x"), pytensor.shared(2.0, name="w")
        >>> program = export_onnx([x], w * x)
        >>> program.replace_weights({"w": 3.0})([1.0, 2.0])
        array([3., 6.])
        """
        program = self._of(replace_weights(self.conversion, weights))
        request = program.conversion.request
        return program.verify(request.examples if request else None) if verify else program

    def rename_axes(self, names: Mapping[str, str]) -> ONNXProgram:
        """Return a program whose axes have other names.

        Parameters
        ----------
        names
            New names by the old ones, of axes of the inputs or of other values. Sizes that are
            computed from an axis follow.

        Raises
        ------
        ArgumentError
            If there is no such axis, or a name would stand for two axes; the message has all.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> from pytensor_onnx import export_onnx
        >>> x = pt.vector("x")
        >>> export_onnx([x], pt.concatenate([x, [1.0]])).rename_axes({"x_dim0": "time"})
        ONNXProgram(x: float64[time] -> output_0: float64[time+1])
        """
        program = self._of(rename_axes(self.conversion, names))
        program.verification = self.verification
        return program

    def _of(self, conversion: Conversion) -> ONNXProgram:
        """Return a program of another conversion, with a copy of the state."""
        program = type(self)(conversion, self.providers, self.session_options)
        program.state = {name: value.copy() for name, value in self.state.items()}
        return program

    def verify(
        self,
        inputs: Sequence[Any] | None = None,
        *,
        state: Mapping[str, np.ndarray] | None = None,
        values: bool = False,
    ) -> ONNXProgram:
        """Check the model, load it, and compare its results with PyTensor's.

        Parameters
        ----------
        inputs
            One array for each input; sampled unless given.
        state
            Values of the state by name, where other than those at export.
        values
            Whether to compare all values within the model too: ``program.verification.values`` has
            their differences on the first sample, and `report` a table of them.

        Raises
        ------
        VerificationError
            If the model is not valid or its results differ; the message names the first node that
            diverges, and ``error.verification`` has the differences of all values.

        Returns
        -------
        ONNXProgram
            This program, with the result in ``program.verification``; `report` describes it.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> from pytensor_onnx import export_onnx
        >>> x = pt.vector("x")
        >>> program = export_onnx([x], pt.exp(pt.tanh(x)).sum())
        >>> verification = program.verify(values=True).verification
        >>> [value.computes for value in verification.values]
        ['Tanh', 'Exp', 'Sum{axes=None}']
        >>> all(value.relative < 1e-15 for value in verification.values)
        True
        """
        return self.verify_on([] if inputs is None else [inputs], state, values=values)

    def verify_on(
        self,
        inputs: Sequence[Sequence[Any]],
        state: Mapping[str, np.ndarray] | None = None,
        *,
        values: bool = False,
        tails: Sequence[Sequence[Any]] = (),
    ) -> ONNXProgram:
        """Verify as by `verify`, on each of several lists of inputs; on samples without any.

        In ``tails``, further lists of extreme inputs, results that are not finite do not count.
        """
        from pytensor_onnx.exporting.verification.verification import verify_conversion

        try:
            with working("comparing with PyTensor"):
                self.verification = verify_conversion(
                    self.conversion,
                    lambda: self.session_of_file,
                    inputs,
                    state,
                    values=values,
                    tails=tails,
                )
        except VerificationError as error:
            self.verification = error.verification or self.verification
            raise
        return self

    def report(self) -> str:
        """Return a description of the model in Markdown.

        It tells how the program runs here, too: which nodes run in native kernels
        (docs/understanding/kernels.md), and why the others do not.
        """
        opened = vars(self).get("session")
        if opened is not None:
            kernels = opened.kernels()
        else:
            kernels = kernels_of(self.conversion.model, self.providers, self.session_options)
        return report_on(self.conversion, self.verification, kernels)

    def fingerprint(self) -> Fingerprint:
        """Return which results have the same bits on all machines, and a digest of the model.

        They have them in sessions of ``SessionOptions(reproducible=True)``, and in pages and
        libraries of a tape.

        Examples
        --------
        >>> import pytensor.tensor as pt
        >>> from pytensor_onnx import export_onnx
        >>> x = pt.vector("x")
        >>> program = export_onnx([x], {"y": pt.exp(x).sum()})
        >>> program.fingerprint().is_reproducible
        True
        """
        return fingerprint_of(self.proto)

    def _repr_html_(self) -> str:
        from pytensor_onnx.exporting.program.notebook_view import notebook_view

        return notebook_view(
            self.model, self.draw(), self.verification, self.changes, _target_of(self.conversion)
        )

    def __repr__(self) -> str:
        inputs = ", ".join(map(describe, self.inputs))
        outputs = ", ".join(map(describe, self.model.graph.outputs))
        return f"ONNXProgram({inputs} -> {outputs})"


def report_on(
    conversion: Conversion, verification: Verification, kernels: Iterable[str] = ()
) -> str:
    """Return the report on a model and its verification in Markdown.

    Parameters
    ----------
    conversion
        The model and the graph.
    verification
        The result of its verification.
    kernels
        Lines on the regions of its session.
    """
    model = conversion.model
    graph = model.graph
    operators = operator_counts(model)
    functions = [f"{name}: {count} nodes" for name, count in function_sizes(model)]
    state = [f"{s.name} -> {s.next_name}" for s in conversion.states]
    sections = [
        "# ONNX model",
        f"opset {graph.opset_imports['']}, IR version {model.ir_version}, "
        f"target {_target_of(conversion)}, made by {model.producer_name} {model.producer_version} "
        f"with PyTensor {model.metadata_props.get('pytensor_version', '?')}",
        _section("Inputs", map(describe, conversion.inputs)),
        _section("Outputs", map(describe, graph.outputs)),
        _section("State", state),
        _section("Operators", (f"{name}: {count}" for name, count in sorted(operators.items()))),
        _section("Functions", functions),
        _section(
            "Size",
            [
                f"{sum(operators.values())} nodes",
                f"{len(graph.initializers)} constants, {weight_bytes(model):,} bytes",
            ],
        ),
        _section("Native kernels of this session", kernels),
        _section("Changes for the target", conversion.changes),
        _section("Precision", verification.losses),
        _section("Verification", [verification]),
        _table_of(verification.values),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _target_of(conversion: Conversion) -> str:
    request = conversion.request
    version = None if request is None else request.options.runtime_version
    return conversion.target + (f" from version {version} on" if version else "")


def _table_of(values: Iterable[ValueDifference]) -> str:
    """Return a table of the differences of values from PyTensor's, empty without any."""
    rows = [
        f"| {value.name} | {value.computes} | {value.largest:.3g} | {value.relative:.3g} "
        f"| {value.line} |"
        for value in values
    ]
    if not rows:
        return ""
    columns = (
        "| value | computes | largest difference | relative | made at |\n|---|---|---|---|---|"
    )
    return "\n".join(["## Differences by value\n", columns, *rows])


def _section(title: str, lines: Iterable[object]) -> str:
    listing = "\n".join(f"- {line}" for line in lines)
    return f"## {title}\n\n{listing}" if listing else ""


def _in_few_digits(x: np.ndarray) -> list[float]:
    """Return the numbers of an example as a page shows them."""
    return [float(f"{n:.{_DIGITS_OF_EXAMPLE}g}") for n in x.ravel().tolist()]
