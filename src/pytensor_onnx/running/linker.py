"""`ONNXLinker` and the mode ``"ONNX"``: PyTensor functions that run on ONNX Runtime."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.executor import Function
from pytensor.compile.maker import FunctionMaker
from pytensor.compile.mode import Mode
from pytensor.compile.rewriting import functional_rewrite_ofg_inner_graph, rewrite_ofg_inner_graph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import GraphRewriter, in2out
from pytensor.graph.traversal import ancestors
from pytensor.link.basic import JITLinker
from pytensor.printing import op_debug_information
from pytensor.scan.rewriting.inner_graph import (
    functional_rewrite_scan_inner_graph,
    rewrite_scan_inner_graph,
)
from pytensor.tensor.rewriting.basic import constant_folding

import pytensor_onnx.registered_mode  # noqa: F401  (registers the mode of the linker)
from pytensor_onnx import native
from pytensor_onnx.compat.pytensor import calling_maker, warn_if_compiled_by_nutpie
from pytensor_onnx.encodings import Boundary, constant_of, has_tensors, is_encoded
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.named_dims import is_tensor
from pytensor_onnx.rewriting.query.encode_values import tensor_graph
from pytensor_onnx.rewriting.query.registration import (
    INCOMPATIBLE,
    ONNX_QUERY,
    REQUIRED,
    REWRITES_OF_OTHERS,
    switched_off_exclusions,
    with_included,
)
from pytensor_onnx.running.executor import Evaluation, ONNXFunction, ONNXFunctionMaker
from pytensor_onnx.running.python_nodes import UNSUPPORTED, PartedGraph
from pytensor_onnx.running.session import Session, SessionOptions, is_on_cpu, uses_kernels

if TYPE_CHECKING:
    import onnx_ir as ir

    from pytensor_onnx.running.data_parts import DividedSession
    from pytensor_onnx.running.profiling import ProfiledSession

OPSET_VERSION = 21

_UNKNOWN = [None]


class ONNXLinker(JITLinker):
    """Runs a PyTensor function on ONNX Runtime.

    Parameters
    ----------
    providers
        Execution providers in order of preference: ``"cpu"``, ``"cuda"``, ….
    session_options
        How ONNX Runtime runs the model.
    freeze
        Whether shared variables that the function does not update are stored in the model with
        their present values. `set_value` then has no effect on the function, and the runtime can
        lay the values out once.
    assume_finite
        Whether to leave out the guards for NaN that the runtime's reductions need.
    python_fallback
        Whether Ops that cannot be converted run by their own Python implementation, with sessions
        for the graph between them and one warning that lists them; compiling such a graph raises
        `UnsupportedOpError` otherwise. Exports never have such Ops.

    Examples
    --------
    >>> import pytensor, pytensor.tensor as pt
    >>> from pytensor.compile.mode import Mode
    >>> from pytensor_onnx import ONNXLinker
    >>> x = pt.vector("x")
    >>> f = pytensor.function([x], x.sum(), mode=Mode(ONNXLinker(), "fast_run"))
    >>> f([1.0, 2.0])
    array(3.)
    """

    required_rewrites = REQUIRED
    incompatible_rewrites = INCOMPATIBLE

    def __init__(
        self,
        *,
        providers: str | Sequence[str] = "cpu",
        session_options: SessionOptions | None = None,
        freeze: bool = False,
        assume_finite: bool = False,
        python_fallback: bool = True,
        allow_gc: bool | None = None,
        scheduler: Callable | None = None,
    ) -> None:
        super().__init__(allow_gc=allow_gc, schedule=scheduler)
        self.providers = providers
        self.session_options = session_options
        self.freeze = freeze
        self.profile: Any = None
        self.assume_finite = assume_finite
        self.python_fallback = python_fallback

    def accept(
        self,
        fgraph: FunctionGraph,
        no_recycling: Sequence[Variable] | None = None,
        profile: Any = None,
    ) -> "ONNXLinker":
        """Return a linker for a graph, with the options of this one."""
        linker = self if self.fgraph is None or self.fgraph is fgraph else copy.copy(self)
        linker.fgraph = fgraph
        linker.no_recycling = no_recycling or []
        linker.profile = profile
        return linker

    @property
    def mode(self) -> Any:
        """Missing: `pytensor.compile.MonitorMode` looks for it on a linker given to it."""
        raise AttributeError(
            "MonitorMode runs the nodes of a graph one by one and takes no linker: "
            "MonitorMode(pre_func=…, post_func=…, optimizer=pytensor_onnx.rewriting.ONNX_QUERY) "
            "watches the graph of mode ONNX in PyTensor's own implementations"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(providers={self.providers!r}, freeze={self.freeze})"

    def fgraph_convert(
        self,
        fgraph: FunctionGraph,
        order: Any,
        input_storage: Any,
        output_storage: Any,
        storage_map: Mapping[Variable, list[Any]],
        **kwargs: Any,
    ) -> "Session | DividedSession | ProfiledSession | PartedGraph":
        """Convert the graph into a session, whose inputs are the graph's unfrozen inputs.

        Nodes that cannot be converted run in Python, with a session for each part between them.
        """
        frozen = self._frozen_inputs(fgraph)
        graph = _with_constants(fgraph, {v: storage_map[v][0] for v in frozen})
        has_kernels = uses_kernels(self.providers, self.session_options)
        whole = graph
        try:
            graph = tensor_graph(whole)
            open_session, owners, model = self._converted(graph, has_kernels)
        except UNSUPPORTED as error:
            options = self.session_options
            if not self.python_fallback or (options is not None and options.reproducible):
                raise
            return self._parted(whole, has_kernels, error)
        if self.profile and self.profile.flag_time_thunks:
            from pytensor_onnx.running.profiling import ProfiledSession

            return ProfiledSession(open_session, self.session_options, graph, owners)
        shapes = self._shapes_of_data(graph, model, storage_map)
        session = self._divided(model, shapes, lambda: open_session(self.session_options))
        _note_places(session, owners)
        return session

    def _parted(
        self, graph: FunctionGraph, has_kernels: bool, error: PyTensorONNXError
    ) -> PartedGraph:
        """Return a graph with nodes that cannot be converted, cut at these, and warn of them."""
        from pytensor_onnx.conversion import ConversionOptions, convert

        options = ConversionOptions(opset_version=OPSET_VERSION)

        def open_part(part: FunctionGraph) -> Session:
            return self._converted(tensor_graph(part), has_kernels)[0](self.session_options)

        return PartedGraph(
            graph,
            convert=lambda part: convert(tensor_graph(part), options),
            open_part=open_part,
            error=error,
            is_timed=bool(self.profile and self.profile.flag_time_thunks),
            warns=True,
        )

    def _converted(
        self, graph: FunctionGraph, has_kernels: bool
    ) -> tuple[Callable[[SessionOptions | None], Session], dict[str, Apply], "ir.Model"]:
        """Return a function that opens a session of a graph, nodes that made values, and the model.

        Functions with kernels have no bodies; an error within a kernel converts the graph anew.
        """
        from pytensor_onnx.conversion import ConversionOptions, convert
        from pytensor_onnx.graph.names import take_lines, take_owners
        from pytensor_onnx.operators.dims import SHARED
        from pytensor_onnx.pipeline import prepare
        from pytensor_onnx.targets import get_profile

        has_kernel = native.has_kernel if has_kernels else None
        profile = get_profile("onnxruntime")
        options = ConversionOptions(
            opset_version=OPSET_VERSION, raised_opset=profile.max_opset, has_kernel=has_kernel
        )
        converted = convert(graph, options)
        prepare(converted, profile, assume_finite=self.assume_finite)
        shared = self._shared_inputs(self.fgraph)
        for variable, value in zip(graph.inputs, converted.model.graph.inputs, strict=False):
            if variable in shared:
                value.metadata_props[SHARED] = "yes"
        lines, owners = take_lines(converted.model), take_owners(converted.model, graph)

        def open_in_full() -> Session:
            options = replace(self.session_options or SessionOptions(), kernels=False)
            return self._converted(graph, has_kernels=False)[0](options)

        def open_session(options: SessionOptions | None) -> Session:
            return Session(
                converted.model,
                providers=self.providers,
                options=options,
                failures=converted.failures,
                lines=lines,
                in_full=open_in_full if converted.scope.kernel_calls else None,
            )

        return open_session, owners, converted.model

    def _shapes_of_data(
        self,
        graph: FunctionGraph,
        model: "ir.Model",
        storage_map: Mapping[Variable, list[Any]],
    ) -> dict[str, tuple[int, ...]]:
        """Return the present shapes of the model's inputs that are tensors of shared variables."""
        shared = self._shared_inputs(self.fgraph)
        return {
            str(value.name): np.shape(storage_map[variable][0])
            for variable, value in zip(graph.inputs, model.graph.inputs, strict=False)
            if variable in shared and is_tensor(variable.type)
        }

    def _divided(
        self,
        model: "ir.Model",
        shapes: Mapping[str, tuple[int, ...]],
        open_whole: Callable[[], Session],
    ) -> "Session | DividedSession":
        """Return a session that computes what depends on data alone once, where that pays."""
        options = self.session_options or SessionOptions()
        writes = options.profile_prefix is not None or options.optimized_model_path is not None
        if not shapes or writes or not is_on_cpu(self.providers):
            return open_whole()
        from pytensor_onnx.running.data_parts import DividedSession, divide

        division = divide(model, shapes)
        if division is None:
            return open_whole()
        return DividedSession(division, open_whole, model, shapes, self.session_options)

    def _frozen_inputs(self, fgraph: FunctionGraph) -> set[Variable]:
        return self._shared_inputs(fgraph) if self.freeze else set()

    def _shared_inputs(self, fgraph: FunctionGraph) -> set[Variable]:
        """Return the inputs that are shared variables which the function does not update."""
        updated = {fgraph.inputs[i] for i in (fgraph.update_mapping or {}).values()}
        shared = {v for v in fgraph.inputs if isinstance(v, SharedVariable) and has_tensors(v.type)}
        return shared - updated

    def create_thunk_inputs(self, storage_map: Mapping[Variable, list[Any]]) -> list[list[Any]]:
        """Return the storage of each input of the session."""
        frozen = self._frozen_inputs(self.fgraph)
        return [storage_map[v] for v in self.fgraph.inputs if v not in frozen]

    def make_thunk(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Compile the graph; its function is an `ONNXFunction` in every mode with this linker."""
        maker = calling_maker(self)
        if maker is not None and maker.function_class is Function:
            maker.function_class = ONNXFunction
        return super().make_thunk(*args, **kwargs)

    def jit_compile(
        self,
        fn: "Session | DividedSession | ProfiledSession | PartedGraph",
        storage_map: Mapping[Variable, list[Any]] | None = None,
    ) -> Evaluation:
        """Return a function from the values of the unfrozen inputs to those of the outputs."""
        if isinstance(fn, PartedGraph):
            return Evaluation(fn)
        frozen = self._frozen_inputs(self.fgraph)
        inputs = [v for v in self.fgraph.inputs if v not in frozen]
        given, outputs = Boundary.of(inputs), Boundary.of(self.fgraph.outputs)
        positions = {v: i for i, v in enumerate(inputs)}
        followed = [
            (positions.get(v), (storage_map or {}).get(v, _UNKNOWN))
            for v in self._followed_inputs()
        ]

        def decode(results: list[np.ndarray], values: Sequence[Any]) -> list[Any]:
            former = [storage[0] if i is None else values[i] for i, storage in followed]
            return outputs.decode(results, former)

        return Evaluation(
            session=fn,
            encode=None if given.is_plain else given.encode,
            decode=None if outputs.is_plain else decode,
        )

    def _followed_inputs(self) -> list[Variable | None]:
        """Return for each output the input whose next value it is, or None for a plain tensor."""
        updated = self.fgraph.update_mapping or {}
        followed: list[Variable | None] = []
        for i, output in enumerate(self.fgraph.outputs):
            found = None
            if i in updated:
                found = self.fgraph.inputs[updated[i]]
            elif is_encoded(output) and not is_tensor(output.type):
                given = (v for v in ancestors([output]) if v.owner is None)
                found = next((v for v in given if v.type == output.type), None)
            followed.append(found)
        return followed

    def create_jitable_thunk(
        self,
        compute_map: Any,
        order: Any,
        input_storage: Any,
        output_storage: Any,
        storage_map: Mapping[Variable, list[Any]],
    ) -> tuple[list[Callable], list, Any]:
        """Return one thunk that reads the inputs' storage, runs the session and stores outputs."""
        outputs = [storage_map[variable] for variable in self.fgraph.outputs]
        inputs = self.create_thunk_inputs(storage_map)
        if not Boundary.of(self.fgraph.outputs).width:
            # The runtime has no model without outputs; storage is None before it is written.
            return [_finish(lambda: [None] * len(outputs), inputs, outputs, None)], [], None
        session = self.fgraph_convert(
            self.fgraph, order, input_storage, output_storage, storage_map
        )
        evaluate = self.jit_compile(session, storage_map)

        def thunk() -> list[Any]:
            results = evaluate([storage[0] for storage in inputs])
            for storage, result in zip(outputs, results):  # noqa: B905  (on the hot path)
                storage[0] = result
            return results

        finished = _finish(thunk, inputs, outputs, evaluate)
        if hasattr(session, "update_profile"):
            finished.update_profile = session.update_profile
        # One node for the one thunk, as linkers that wrap others expect.
        return [finished], order[-1:], session


def _finish(thunk: Any, inputs: list, outputs: list, evaluate: Evaluation | None) -> Any:
    thunk.evaluate = evaluate
    thunk.inputs = inputs
    thunk.outputs = outputs
    thunk.lazy = False
    return thunk


def _note_places(session: "Session | DividedSession", owners: Mapping[str, Apply]) -> None:
    """Note on the nodes of a graph which kernels run them, for `pytensor.dprint`."""
    places: dict[Apply, dict[str, None]] = {}
    for value, place in session.places().items():
        if value in owners:
            places.setdefault(owners[value], {})[place] = None
    for node, found in places.items():
        node.tag.onnx_places = ", ".join(found)


@op_debug_information.register(Op)
def _place_information(op: Op, node: Apply) -> dict[Apply, dict[Variable, str]]:
    """Return the region of a node, which ``pytensor.dprint(f, print_op_info=True)`` prints."""
    # PyTensor looks a variable up in the information of the node that takes it.
    made = [x for x in (*node.inputs, *node.outputs) if x.owner is not None]
    places = {x: getattr(x.owner.tag, "onnx_places", "") for x in made}
    return {node: {x: place for x, place in places.items() if place}}


def _with_constants(fgraph: FunctionGraph, values: Mapping[Variable, Any]) -> FunctionGraph:
    """Return the graph with some inputs replaced by constants, the graph itself where none is.

    What follows from constants alone is computed.
    """
    if not values:
        return fgraph
    frozen, equivalent = fgraph.clone_get_equiv(check_integrity=False)
    for variable, value in values.items():
        inner = equivalent[variable]
        frozen.replace(inner, constant_of(variable, value), import_missing=True)
        frozen.remove_input(frozen.inputs.index(inner))
    in2out(constant_folding).rewrite(frozen)
    return frozen


class ONNXMode(Mode):
    """The mode ``"ONNX"``."""

    @property
    def linker(self) -> ONNXLinker:
        """The linker of the mode."""
        warn_if_compiled_by_nutpie()
        return self._linker

    @linker.setter
    def linker(self, linker: ONNXLinker) -> None:
        self._linker = linker

    @property
    def function_maker(self) -> type[FunctionMaker]:
        """The class that compiles functions in this mode."""
        return ONNXFunctionMaker

    @property
    def optimizer(self) -> GraphRewriter:
        """The rewriter of graphs, without the rules that are switched off."""
        off = switched_off_exclusions()
        if not off:
            return super().optimizer
        linker: Any = copy.copy(self.linker)
        # A mode leaves out what its linker is incompatible with, whatever its query includes.
        linker.incompatible_rewrites = tuple(n for n in INCOMPATIBLE if n not in off)
        return Mode(linker, with_included(self.provided_optimizer, off)).optimizer


@rewrite_ofg_inner_graph.register(ONNXLinker)
def rewrite_what_is_converted(
    linker: ONNXLinker, op: OpFromGraph, node: Apply, inner: FunctionGraph, *, mode: Mode
) -> None:
    """Rewrite an inner graph in place, unless its Op has a lowering of its own.

    Such an Op is an operator, and the inner graph that defines it is hardly ever converted.
    """
    from pytensor_onnx.dispatch import onnx_funcify

    if onnx_funcify.dispatch(type(op)) is onnx_funcify.dispatch(OpFromGraph):
        functional_rewrite_ofg_inner_graph(linker, op, node, inner, mode=mode)


rewrite_scan_inner_graph.register(ONNXLinker)(functional_rewrite_scan_inner_graph)

for _module in REWRITES_OF_OTHERS:
    import_module(_module)

LINKER = ONNXLinker()
ONNX = ONNXMode(ONNXLinker(), ONNX_QUERY)
