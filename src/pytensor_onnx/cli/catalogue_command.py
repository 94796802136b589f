"""The command ``catalogue``: functions of probability as one file."""

from pathlib import Path

import click

from pytensor_onnx.cli.arguments_of_commands import NEW_PATH, with_json
from pytensor_onnx.cli.terminal import print_json


@click.command
@click.option(
    "--output",
    "-o",
    type=NEW_PATH,
    default="prob.onnx",
    show_default=True,
    help="File to write.",
)
@click.option(
    "--only",
    metavar="NAME,NAME",
    default="",
    help="Distributions, bijectors, families or functions, such as normal,gamma; draft for the "
    "operators of ONNX's draft. [default: all]",
)
@click.option(
    "--dtype",
    "dtypes",
    type=click.Choice(("float32", "float64")),
    multiple=True,
    help="Dtype of the functions; may be repeated. [default: both]",
)
@click.option(
    "--vectors",
    type=NEW_PATH,
    help="Folder for a model of each function, with its test vectors.",
)
@with_json
def catalogue(
    output: Path, only: str, dtypes: tuple[str, ...], vectors: Path | None, as_json: bool
) -> None:
    """Write a library of functions of probability that any model can link.

    Functions are model-local functions of standard operators: densities, distribution functions,
    draws, moments and gradients of distributions, bijectors, special functions, and matrices.

    Example: pytensor-onnx catalogue --only normal,gamma -o prob.onnx
    """
    import onnx

    from pytensor_onnx.catalogue.library import DTYPES, compiled, library_of
    from pytensor_onnx.catalogue.vectors import write_vectors
    from pytensor_onnx.exporting.requests.output_names import check_file
    from pytensor_onnx.progress import working

    check_file(output, "--output")
    with working("writing functions"):
        names = [name for name in only.split(",") if name.strip()]
        made = list(compiled(names, dtypes or DTYPES))
        library = library_of(made)
        onnx.save(library, output)
        if vectors is not None:
            for one in made:
                write_vectors(one, vectors / one.dtype / one.entry.name)
    domains = ("pytensor.prob.", "pytensor.draft_")
    public = sum(f.domain.startswith(domains) for f in library.functions)
    if as_json:
        listed = {f.name: f.domain for f in library.functions}
        print_json({"file": str(output), "functions": public, "names": listed})
        return
    size = output.stat().st_size
    print(f"wrote {output}: {public} functions, {size:,} bytes")
