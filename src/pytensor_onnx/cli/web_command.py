"""The command ``web``: a page around a model."""

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from pytensor_onnx.cli.arguments_of_commands import AsJson, File
from pytensor_onnx.cli.terminal import print_json
from pytensor_onnx.errors import PyTensorONNXError
from pytensor_onnx.extras import require

Engine = Literal["auto", "tape", "onnxruntime"]
RuntimeSource = Literal["npm", "cdn"]


def web(
    model: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("site"),
    page: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="YAML file: title, text, inputs, outputs."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="First state of a model that updates one."),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="tape is small, and auto takes it where it covers the model.")
    ] = "auto",
    runtime: Annotated[
        RuntimeSource, typer.Option(help="npm copies ONNX Runtime Web, cdn links a public host.")
    ] = "npm",
    webgpu: Annotated[bool, typer.Option(help="Use WebGPU where browser and model can.")] = False,
    serve: Annotated[bool, typer.Option(help="Open the page on this machine.")] = False,
    port: Annotated[int, typer.Option(help="Port for --serve.")] = 8000,
    as_json: AsJson = False,
) -> None:
    """Make a web page that runs a model."""
    from pytensor_onnx.exporting.files.model_reading import read_model
    from pytensor_onnx.web.description import read_description
    from pytensor_onnx.web.server import ADDRESS, make_server
    from pytensor_onnx.web.site import build_site

    if page:
        require("web", "--page")
    read_model(model)
    folder = build_site(
        model,
        output,
        page=read_description(page) if page else None,
        engine=engine,
        runtime=runtime,
        webgpu=webgpu,
        state=state,
    )
    described = json.loads((folder / "page.json").read_text(encoding="utf-8"))
    values = described["inputs"] + described["outputs"]
    if as_json:
        print_json({"folder": str(folder), "page": described})
    else:
        typer.echo(f"wrote {folder}: copy it to any web server, or see it by --serve")
        if reason := described["runtime"].get("reason"):
            typer.echo(f"ONNX Runtime Web runs the model: {reason}")
        else:
            typer.echo("a tape runs the model, without ONNX Runtime Web")
        if any(value["dtype"] == "float64" for value in values):
            typer.echo('its numbers are float64: target="web" exports float32, half as large')
    if serve:
        try:
            opened = make_server(folder, port)
        except OSError as error:
            reason = f"port {port} cannot be opened, name another by --port: {error}"
            raise PyTensorONNXError(reason) from None
        with opened as server:
            typer.echo(f"serving http://{ADDRESS}:{server.server_address[1]}/, Ctrl-C ends it")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                typer.echo("ended")
