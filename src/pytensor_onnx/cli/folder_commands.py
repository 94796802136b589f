"""The commands that write folders: ``serve-config`` for servers, ``web`` for a page."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from inspect import isfunction, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

import click

from pytensor_onnx.cli.arguments_of_commands import FILE, NEW_PATH, with_json
from pytensor_onnx.cli.terminal import one_line, print_json, printable, show
from pytensor_onnx.errors import NoTapeError, PyTensorONNXError
from pytensor_onnx.late_names import require
from pytensor_onnx.progress import working

if TYPE_CHECKING:
    import onnx_ir as ir


_NEXT = {
    "triton": "tritonserver --model-repository={folder}",
    "kserve": "copy {folder}/repository to a bucket, name it in {folder}/inference_service.yaml, "
    "and kubectl apply -f {folder}/inference_service.yaml",
    "mlserver": "mlserver start {folder}",
    "bentoml": "cd {folder} && bentoml serve service:Model",
    "mlflow": "python {folder}/log_model.py",
}


@click.command("serve-config")
@click.argument("model", type=FILE)
@click.option("--for", "server", type=click.Choice(tuple(_NEXT)), required=True, help="The server.")
@click.option(
    "--output", "-o", type=NEW_PATH, help="Folder to write. [default: named as the server]"
)
@click.option(
    "--constant",
    multiple=True,
    help="NAME=VALUE, a value in JSON for an input without rows, for servers of tables; "
    "may be repeated.",
)
@click.option("--force", is_flag=True, help="Replace files in a folder that is not empty.")
@with_json
def serve_config(
    model: Path,
    server: str,
    output: Path | None,
    constant: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Write the folder of a model that a server loads.

    It has a copy of the model and the files that the server wants: config.pbtxt for Triton, the
    manifest for KServe, and services that score tables for MLServer, BentoML and MLflow.
    """
    from pytensor_onnx.serving.folders import write_serving_folder

    folder = output or Path(server)
    with working("writing"):
        constants = dict(map(_pair, constant))
        written = write_serving_folder(model, server, folder, constants, force=force)
    following = _NEXT[server].format(folder=_quoted(str(folder)))
    if as_json:
        print_json({"files": list(map(str, written)), "next": following})
        return
    show(*(f"wrote {one_line(path)}" for path in written), f"next: {following}")


def _quoted(name: str) -> str:
    r"""Quote a name for a shell; one with tabs, line ends or escape sequences for bash and zsh.

    Examples
    --------
    >>> print(_quoted("my models"), _quoted("a\tb"))
    'my models' $'a\tb'
    """
    if name.isprintable():
        return shlex.quote(name)
    escaped = name.replace("\\", r"\\").replace("'", r"\'")
    return f"$'{one_line(escaped)}'"


def _pair(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition("=")
    try:
        if separator:
            return name, json.loads(value)
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r}: write NAME=VALUE, a value in JSON, such as seed=1")


_SECONDS_OF_WATCH = 0.5

Engine = Literal["auto", "tape", "onnxruntime"]
RuntimeSource = Literal["npm", "cdn"]


class _FileOrObject(click.ParamType):
    """A file, or an object of a Python module as ``module:name``."""

    name = "file"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | str:
        """Return the path of a file, or the name of an object."""
        # A path of Windows may have a colon, too.
        is_name = re.fullmatch(r"[\w.]+:[\w.]+", value) and not Path(value).exists()
        return value if is_name else FILE.convert(value, param, ctx)


@click.command
@click.argument("model", type=_FileOrObject())
@click.option(
    "--output",
    "-o",
    type=NEW_PATH,
    help="Folder to write, or file that ends in .html. [default: site]",
)
@click.option("--single-file", is_flag=True, help="Write one HTML file that needs no server.")
@click.option("--page", type=FILE, help="YAML file: title, text, inputs, outputs.")
@click.option("--state", type=FILE, help="First state of a model that updates one.")
@click.option(
    "--config",
    type=FILE,
    help="File beside the model, in JSON or a class in each line: names of classes, preprocessing.",
)
@click.option(
    "--engine",
    type=click.Choice(("auto", "tape", "onnxruntime")),
    default="auto",
    show_default=True,
    help="tape is small, and auto takes it where it covers the model.",
)
@click.option(
    "--runtime",
    type=click.Choice(("npm", "cdn")),
    default="npm",
    show_default=True,
    help="npm copies ONNX Runtime Web, cdn links a public host.",
)
@click.option("--force", is_flag=True, help="Replace the page that is there.")
@click.option("--watch", is_flag=True, help="Write the page again when its sources change.")
@click.option("--webgpu/--no-webgpu", help="Use WebGPU where browser and model can.")
@click.option("--serve/--no-serve", help="Open the page on this machine.")
@click.option(
    "--port",
    type=click.IntRange(0, 2**16 - 1),
    default=8000,
    show_default=True,
    help="Port for --serve.",
)
@with_json
def web(
    model: Path | str,
    output: Path | None,
    single_file: bool,
    page: Path | None,
    state: Path | None,
    config: Path | None,
    engine: Engine,
    runtime: RuntimeSource,
    force: bool,
    watch: bool,
    webgpu: bool,
    serve: bool,
    port: int,
    as_json: bool,
) -> None:
    """Make a web page that runs a model.

    MODEL is an ONNX file, or MODULE:NAME: a Python module and a model of PyMC or Bambi in it (the
    page draws from its posterior), a tuple of such a model and its draws (the page predicts), or
    what pytensor-onnx export takes.

    Example: pytensor-onnx web mymodule:model -o page.html
    """
    single_file = single_file or (output is not None and output.suffix == ".html")
    name = model.stem if isinstance(model, Path) else model.rpartition(":")[2]
    target = output or Path(f"{name}.html" if single_file else "site")
    if single_file and (serve or webgpu or engine == "onnxruntime"):
        raise PyTensorONNXError("one file has a tape and needs no server: name a folder, -o site")
    if page:
        require("web", "--page")
    request = PageRequest(target, page, state, config, engine, runtime, webgpu, single_file, force)
    described = _write(model, request)
    _report(described, request, as_json)
    if watch:
        _watch(model, request)
    if serve:
        from pytensor_onnx.web.packages import ADDRESS, make_server

        try:
            opened = make_server(target, port)
        except OSError as error:
            reason = f"port {port} cannot be opened, name another by --port: {error}"
            raise PyTensorONNXError(reason) from None
        with opened as server:
            click.echo(f"serving http://{ADDRESS}:{server.server_address[1]}/, Ctrl-C ends it")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                click.echo("ended")


@dataclass(frozen=True)
class PageRequest:
    """The options of a page, and its place."""

    target: Path
    page: Path | None
    state: Path | None
    config: Path | None
    engine: Engine
    runtime: RuntimeSource
    webgpu: bool
    single_file: bool
    force: bool


def _write(model: Path | str, request: PageRequest) -> dict[str, Any]:
    """Write the page of a file or of an object, and return its description."""
    from pytensor_onnx.exporting.files.file_verification import load
    from pytensor_onnx.exporting.requests.state_files import write_state
    from pytensor_onnx.graph.model_reading import read_model
    from pytensor_onnx.web.controls import read_description
    from pytensor_onnx.web.site import build_site, make_page, replacing

    with TemporaryDirectory() as temporary:
        file, state = Path(temporary, "model.onnx"), request.state
        if isinstance(model, str):
            with working("exporting"):
                program = page_program(model)
                program.save_for_page(file)
                if program.state and state is None:
                    state = write_state(Path(temporary, "state.npz"), program.state, 0)
        else:
            file = model
        is_sampler = _is_sampler(read_model(file))
        description = read_description(request.page) if request.page else {}
        if request.config:
            description["configuration"] = str(request.config)
        target = request.target
        if request.single_file:
            if target.exists() and not request.force:
                raise PyTensorONNXError(f"{target} exists: replace it by --force, or name another")
            with working("writing the page"):
                try:
                    made = make_page(file, page=description, state=state)
                except NoTapeError as error:
                    if isinstance(model, str):
                        raise
                    optimized = _optimized(file, Path(temporary, model.name), error)
                    made = make_page(optimized, page=description, state=state)
                made.save(target)
            return {**made.description, "is_sampler": is_sampler}
        replaced = replacing(target) if request.force else nullcontext(target)
        with working("writing the page"), replaced as folder:
            build_site(
                file,
                folder,
                page=description,
                engine=request.engine,
                runtime=request.runtime,
                webgpu=request.webgpu,
                state=state,
            )
        described = json.loads((target / "page.json").read_text(encoding="utf-8"))
        if described["runtime"].get("reason"):
            # The page would show the error of the runtime.
            load(str(file), threads=1)
        return {**described, "is_sampler": is_sampler}


def _optimized(file: Path, target: Path, error: NoTapeError) -> Path:
    """Write a file anew for its page: tapes cover more operators of files written for pages.

    If the new file has no tape either, the error of the original file is raised.
    """
    from pytensor_onnx.exporting.files.optimized_files import optimize_onnx
    from pytensor_onnx.web.tape_file import write_tape

    try:
        optimize_onnx(file, target, target="web")
        write_tape(target, target.parent / "tape", of_any_size=True)
    except PyTensorONNXError:
        raise error from None
    return target


def _report(described: dict[str, Any], request: PageRequest, as_json: bool) -> None:
    """Print a summary of the page, and hints for the next step."""
    target, is_sampler = request.target, described.pop("is_sampler")
    if as_json:
        key = "file" if request.single_file else "folder"
        print_json({key: str(target), "page": described})
        return
    if request.single_file:
        size = target.stat().st_size / 1e6
        click.echo(f"wrote {target} ({size:.2f} MB): open it in a browser, mail it")
    else:
        click.echo(
            f"wrote {target}: copy it to any web server, or see it by --serve "
            "(-o page.html writes one file that needs none)"
        )
    if reason := described["runtime"].get("reason"):
        click.echo(f"ONNX Runtime Web runs the model: {printable(reason)}")
    elif not request.single_file:
        click.echo("a tape runs the model, without ONNX Runtime Web")
    values = described["inputs"] + described["outputs"]
    # Samplers need float64, for all targets.
    if not is_sampler and any(value["dtype"] == "float64" for value in values):
        click.echo('its numbers are float64: target="web" exports float32, half as large')


def page_program(name: str) -> Any:
    """Export an object of a Python module for a page.

    Parameters
    ----------
    name
        ``module:name`` of a model of PyMC or Bambi, whose page draws; of a tuple of such a model
        and its draws, whose page predicts; of a function without parameters that returns one of
        these; or of another object that can be exported.
    """
    from pytensor_onnx.cli.exported_pages import program_of
    from pytensor_onnx.cli.inspection import named_object

    value = named_object(name)
    if isfunction(value) and not signature(value).parameters:
        value = value()
    return program_of(value)


def _watch(model: Path | str, request: PageRequest) -> None:
    """Write the page again, by a process of its own, when a source changes."""
    sources = [request.page, request.state, request.config, Path(model)]
    if isinstance(model, str):
        module = sys.modules[model.partition(":")[0]]
        sources[-1] = Path(str(module.__file__))
    files = [file for file in sources if file is not None]
    arguments = [a for a in sys.argv[1:] if a not in {"--watch", "--force"}]
    click.echo(f"watching {', '.join(map(str, files))}, Ctrl-C ends it")
    seen = [file.stat().st_mtime_ns for file in files]
    with suppress(KeyboardInterrupt):
        while True:
            time.sleep(_SECONDS_OF_WATCH)
            now = [file.stat().st_mtime_ns for file in files if file.exists()]
            if now != seen:
                seen = now
                command = [sys.executable, "-m", "pytensor_onnx", *arguments, "--force"]
                subprocess.run(command, check=False)


def _is_sampler(model: ir.Model) -> bool:
    """Return whether a model is a sampler of a PyMC model."""
    from pytensor_onnx.graph.model_reading import stored_mapping

    return "sampler" in stored_mapping(model.metadata_props, "pymc")
