"""The commands that write folders: ``serve-config`` for servers, ``web`` for a page."""

from __future__ import annotations

import json
import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from pytensor_onnx.cli.arguments_of_commands import FILE, NEW_PATH, with_json
from pytensor_onnx.cli.terminal import one_line, print_json, printable, show
from pytensor_onnx.errors import PyTensorONNXError
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


Engine = Literal["auto", "tape", "onnxruntime"]
RuntimeSource = Literal["npm", "cdn"]


@click.command
@click.argument("model", type=FILE)
@click.option(
    "--output",
    "-o",
    type=NEW_PATH,
    default="site",
    show_default=True,
    help="Folder to write.",
)
@click.option("--page", type=FILE, help="YAML file: title, text, inputs, outputs.")
@click.option("--state", type=FILE, help="First state of a model that updates one.")
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
@click.option("--force", is_flag=True, help="Replace the page in the folder.")
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
    model: Path,
    output: Path,
    page: Path | None,
    state: Path | None,
    engine: Engine,
    runtime: RuntimeSource,
    force: bool,
    webgpu: bool,
    serve: bool,
    port: int,
    as_json: bool,
) -> None:
    """Make a web page that runs a model."""
    from pytensor_onnx.exporting.files.file_verification import load
    from pytensor_onnx.graph.model_reading import read_model
    from pytensor_onnx.web.controls import read_description
    from pytensor_onnx.web.packages import ADDRESS, make_server
    from pytensor_onnx.web.site import build_site, replacing

    if page:
        require("web", "--page")
    is_sampler = _is_sampler(read_model(model))
    with working("writing the page"), replacing(output) if force else nullcontext(output) as target:
        build_site(
            model,
            target,
            page=read_description(page) if page else None,
            engine=engine,
            runtime=runtime,
            webgpu=webgpu,
            state=state,
        )
    described = json.loads((output / "page.json").read_text(encoding="utf-8"))
    values = described["inputs"] + described["outputs"]
    if as_json:
        print_json({"folder": str(output), "page": described})
    else:
        click.echo(f"wrote {output}: copy it to any web server, or see it by --serve")
        if reason := described["runtime"].get("reason"):
            click.echo(f"ONNX Runtime Web runs the model: {printable(reason)}")
            # The page would show the error of the runtime.
            load(str(model), threads=1)
        else:
            click.echo("a tape runs the model, without ONNX Runtime Web")
        # Samplers need float64, for all targets.
        if not is_sampler and any(value["dtype"] == "float64" for value in values):
            click.echo('its numbers are float64: target="web" exports float32, half as large')
    if serve:
        try:
            opened = make_server(output, port)
        except OSError as error:
            reason = f"port {port} cannot be opened, name another by --port: {error}"
            raise PyTensorONNXError(reason) from None
        with opened as server:
            click.echo(f"serving http://{ADDRESS}:{server.server_address[1]}/, Ctrl-C ends it")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                click.echo("ended")


def _is_sampler(model: ir.Model) -> bool:
    """Return whether a model is a sampler of a PyMC model."""
    from pytensor_onnx.graph.model_reading import stored_mapping

    return "sampler" in stored_mapping(model.metadata_props, "pymc")
