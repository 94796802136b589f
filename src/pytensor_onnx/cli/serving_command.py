"""The command ``serve-config``: the folder of a model that a server loads."""

import json
import shlex
from pathlib import Path
from typing import Any

import click

from pytensor_onnx.cli.arguments_of_commands import FILE, NEW_PATH, with_json
from pytensor_onnx.cli.terminal import one_line, print_json, show
from pytensor_onnx.progress import working

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
