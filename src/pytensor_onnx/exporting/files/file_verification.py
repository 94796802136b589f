"""Verify any ONNX file in a separate process with limits of time and memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytensor_onnx.errors import PyTensorONNXError, VerificationError
from pytensor_onnx.exporting.verification.array_differences import relative_error
from pytensor_onnx.exporting.verification.file_vectors import METADATA, Vectors
from pytensor_onnx_scoring.problems import is_interruption

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    from pytensor_onnx.exporting.verification.sampling import Sample
    from pytensor_onnx.running.session import Session

MEMORY = 2**30
"""Bytes that a file may take beyond its own size, which the runtime holds several times."""

COPIES = 16
_MEMORY_MESSAGES = (
    *("bad_alloc", "Failed to allocate memory", "MemoryError", "Unable to allocate"),
    *(
        "bad_array_new_length",
        "Integer overflow",
        "array is too big",
        "maximum supported dimension",
    ),
)


@dataclass
class FileCheck:
    """Successful steps of a verification, and the error that ended it, if any."""

    steps: list[str] = field(default_factory=list)
    error: str | None = None


def verify_file(path: str | os.PathLike) -> Iterator[str]:
    """Check a file, load it into ONNX Runtime, and run it on its test vectors and on samples.

    Parameters
    ----------
    path
        An ONNX file of any exporter.

    Yields
    ------
    str
        One line for each successful step.

    Raises
    ------
    VerificationError
        If the ONNX checker or ONNX Runtime refuses the file, its results differ from those of its
        test vectors, or no sampled inputs fit.
    """
    import onnx_ir as ir

    from pytensor_onnx.exporting.requests.descriptions import describe
    from pytensor_onnx.exporting.verification.model_check import check_model
    from pytensor_onnx.graph.model_reading import read_model

    file = os.fspath(path)
    note = check_model(file, file)
    yield f"the ONNX checker accepts it{f', but {note}' if note else ''}"
    # The stacks of further threads would count as memory of the file.
    session = load(file, threads=1)
    yield "ONNX Runtime loads it"
    text = read_model(Path(file)).metadata_props.get(METADATA)
    if text is not None:
        yield run_on_vectors(session, text)
    drawn, results = run_on_sample(session, file)
    found = ", ".join(
        describe(ir.val(name, dtype=ir.DataType.from_numpy(a.dtype), shape=a.shape))
        for name, a in zip(session.output_names, results, strict=True)
    )
    yield f"it runs on {drawn} and returns {found}"


def run_on_vectors(session: Session, text: str) -> str:
    """Describe the agreement of a session with the test vectors of its file.

    Raises
    ------
    VerificationError
        If the vectors cannot be read, the session refuses them, or its results differ.
    """
    from pytensor_onnx.graph.file_parts import as_arrays

    try:
        vectors = Vectors.of_text(text)
        found = as_arrays(session.run(vectors.inputs))
        results = dict(zip(session.output_names, found, strict=True))
    except PyTensorONNXError as error:
        raise VerificationError(str(error)) from error
    if problems := vectors.problems(results):
        raise VerificationError("; ".join(problems))
    errors = [relative_error(results[name], x) for name, x in vectors.outputs.items()]
    return (
        "its results are those of PyTensor on the stored test vectors (largest relative error "
        f"{max(errors, default=0.0):.1e})"
    )


def load(file: str, *, threads: int | None = None, providers: str = "cpu") -> Session:
    """Load a file into ONNX Runtime.

    Raises
    ------
    VerificationError
        If ONNX Runtime refuses the file.
    """
    from pytensor_onnx.graph.model_reading import read_model
    from pytensor_onnx.running.ort_optimizers import provider_names
    from pytensor_onnx.running.session import Session, SessionOptions

    provider_names(providers)
    try:
        return Session(file, providers=providers, options=SessionOptions(threads=threads))
    except (OSError, MemoryError):
        raise
    except Exception as error:
        # A file of another kind has an error of its own.
        read_model(Path(file))
        if is_interruption(error):
            raise
        told = (
            "" if isinstance(error, PyTensorONNXError) else f"ONNX Runtime does not load {file}: "
        )
        raise VerificationError(f"{told}{error}") from error


def run_on_sample(session: Session, file: str) -> tuple[Sample, list[np.ndarray]]:
    """Return the first sampled inputs that a file runs on, and its results.

    Raises
    ------
    VerificationError
        If no sampled inputs fit, or an input has no numbers to sample.
    """
    import numpy as np
    import onnx_ir as ir

    from pytensor_onnx.exporting.verification.sampling import ATTEMPTS, sample
    from pytensor_onnx.graph.file_parts import as_arrays
    from pytensor_onnx.graph.model_reading import read_model

    inputs = [v for v in read_model(Path(file)).graph.inputs if not v.is_initializer()]
    columns = {str(v.name): _categories(v) for v in inputs if v.dtype == ir.DataType.STRING}
    strings = {name: known for name, known in columns.items() if known is not None}
    # Sizes and rows of strings are those of numbers.
    inputs = [
        ir.val(str(v.name), ir.DataType.INT64, v.shape) if v.name in strings else v for v in inputs
    ]
    for value in inputs:
        type_ = value.type
        if not isinstance(type_, ir.TensorType) or type_.dtype.numpy().kind not in "biuf":
            raise VerificationError(
                f"{file} was not run: input {value.name!r} is of type {type_}, and samples are "
                "tensors of real numbers only"
            )
    reason = ""
    for attempt in ATTEMPTS:
        try:
            drawn = sample(inputs, attempt)
            for i, name in enumerate(drawn.names):
                if name in strings:
                    drawn.arrays[i] = np.resize(strings[name], drawn.arrays[i].shape)
            results = session.run(dict(zip(drawn.names, drawn.arrays, strict=True)))
            return drawn, as_arrays(results)
        except Exception as error:
            if is_interruption(error):
                raise
            reason = reason or str(error)
    raise VerificationError(f"{file} runs on no sampled inputs: {reason}")


def _categories(column: ir.Value) -> np.ndarray | None:
    """Return the strings that the first encoder behind a column knows, None without one."""
    import numpy as np

    behind = [column]
    for value in behind:
        for node, _ in value.uses():
            for name in ("cats_strings", "keys_strings"):
                attribute = node.attributes.get(name)
                if attribute is not None and attribute.value:
                    return np.array(list(attribute.as_strings()), dtype=object)
            behind.extend(node.outputs)
    return None


def verify_file_apart(path: Path, *, timeout: float) -> FileCheck:
    """Verify a file in a separate process with a timeout.

    Parameters
    ----------
    path
        An ONNX file, which may run forever or use all memory.
    timeout
        Time limit in seconds.

    Returns
    -------
    FileCheck
        The successful steps, and the error that ended the verification, if any.

    Raises
    ------
    PyTensorONNXError
        If the file is no readable model, or one of its weight files is missing.
    """
    command = [sys.executable, "-P", "-m", __name__, str(path)]
    outcome = FileCheck()
    # Ctrl-C reaches this process alone, which ends the other one.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
    ) as process:
        try:
            # The process imports the runtime meanwhile.
            from pytensor_onnx.graph.model_reading import external_bytes

            memory = MEMORY + COPIES * (path.stat().st_size + external_bytes(path))
            assert process.stdout is not None
            # The first line says that the imports are done.
            process.stdout.readline()
            output, _ = process.communicate(f"{memory}\n".encode(), timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            outcome.error = (
                f"{path} did not end within {timeout:g} s (--timeout takes another limit)"
            )
        except BaseException:
            process.kill()
            raise
    for line in output.decode().splitlines():
        kind, text = json.loads(line)
        if kind == "step":
            outcome.steps.append(text)
        else:
            outcome.error = outcome.error or text
    if outcome.error is None and process.returncode:
        outcome.error = (
            f"{path} ended the process that verified it: {_exit_reason(process.returncode)}"
        )
    if outcome.error and any(text in outcome.error for text in _MEMORY_MESSAGES):
        reason = outcome.error.strip()
        outcome.error = f"{path} needs more than {memory / 2**30:.1f} GiB of memory: {reason}"
    return outcome


def _exit_reason(code: int) -> str:
    if code > 0:
        return f"exit code {code}"
    return f"{signal.Signals(-code).name}, which running out of memory can cause"


def _limit_memory(n_bytes: int) -> None:
    """Limit the further memory of this process, on systems that support it."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError):
        return
    limit = pages * resource.getpagesize() + n_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _main(file: str) -> None:
    """Verify a file within the memory of the standard input, and write a line for each step."""
    import onnxruntime  # noqa: F401  before memory is counted

    import pytensor_onnx.exporting.requests.descriptions
    import pytensor_onnx.exporting.verification.model_check
    import pytensor_onnx.exporting.verification.sampling
    import pytensor_onnx.graph.model_reading
    import pytensor_onnx.passes.defects
    import pytensor_onnx.running.session  # noqa: F401

    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")

    def write(kind: str, text: Any) -> None:
        lines.write(json.dumps([kind, text]) + "\n")
        lines.flush()

    # The runtime prints names of the model unescaped.
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    lines.write("\n")
    lines.flush()
    _limit_memory(int(sys.stdin.readline()))
    try:
        for step in verify_file(file):
            write("step", step)
    except VerificationError as error:
        write("error", str(error))
    except MemoryError as error:
        write("error", f"MemoryError: {error}")
    except Exception as error:
        write("error", f"{file} cannot be verified: {type(error).__name__}: {error}")
    # Freeing all modules takes as long as the verification of a small file.
    os._exit(0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
