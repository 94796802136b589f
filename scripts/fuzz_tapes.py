"""Run damaged tapes in the native library, built for the sanitizers of the system's C compiler.

``uv run --all-extras python -m scripts.fuzz_tapes [--number 100000] [--first 0]`` damages tapes of
many models: bits, words, sections, sizes, types and inputs. Each is run twice, in processes whose
new memory has other bytes, so that outputs show memory that nothing has written. A report of a
sanitizer, or a result that differs, is reduced to the fewest damaged words, and the smallest is
printed. A tape that takes too long is only counted. Each number is the same tape on every machine.
"""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from scripts.sanitize import FLAGS, ROOT, SANITIZERS
from tests.native.damaged_tapes import Seed, damaged, seeds

SECONDS = 20.0
"""Seconds after which a tape takes too long: a loop may have any number of iterations."""
OF_RUNTIME = ("functions.c", "region.c", "registration.c")
"""Sources that call ONNX Runtime."""
MOST_FAILURES = 5
FILLS = (0x11, 0xEE)


def build(folder: Path) -> Path:
    """Build the program that runs tapes, with both sanitizers."""
    compiler = os.environ.get("CC", "cc").split()
    sources = [x for x in sorted((ROOT / "native").glob("*.c")) if x.name not in OF_RUNTIME]

    def object_of(source: Path) -> Path:
        target = folder / f"{source.stem}.o"
        subprocess.run([*compiler, *FLAGS, "-c", source, "-o", target], check=True)
        return target

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        driver = ROOT / "tests" / "native" / "run_tapes.c"
        objects = list(pool.map(object_of, [*sources, driver]))
    program = folder / "run_tapes"
    subprocess.run([*compiler, *SANITIZERS, *objects, "-o", program, "-lm"], check=True)
    return program


class Worker:
    """A process that runs tapes, and is started anew where one ends it."""

    def __init__(self, program: Path, fill: int) -> None:
        options = "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=64:"
        options += f"soft_rss_limit_mb=1500:malloc_fill_byte={fill}:max_malloc_fill_size={2**26}"
        self.environment = {**os.environ, "ASAN_OPTIONS": options}
        self.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def send(self, message: bytes) -> None:
        """Begin to run a tape."""
        if self.process is None:
            self.errors.seek(0)
            self.errors.truncate()
            self.process = subprocess.Popen(
                [self.program],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
            )
        assert self.process.stdin
        try:
            self.process.stdin.write(message)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def answer(self, seconds: float) -> str:
        """Return the line of the program, or how the tape has failed."""
        process = self.process
        assert process is not None
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], seconds)[0]:
            self.end()
            return "time"
        if line := process.stdout.readline():
            return line.decode().strip()
        process.wait()
        self.errors.seek(0)
        text = self.errors.read().decode(errors="replace")
        self.end()
        return f"failed: {process.returncode}\n{text[:3000]}"


def outcome(workers: Sequence[Worker], message: bytes, seconds: float = SECONDS) -> str:
    """Return the answer of all workers, or how they fail."""
    for worker in workers:
        worker.send(message)
    answers = [worker.answer(seconds) for worker in workers]
    failed = [x for x in answers if x.startswith("failed")]
    if failed:
        return failed[0]
    if "time" in answers:
        return "time"
    return answers[0] if len(set(answers)) == 1 else f"failed: results differ: {answers}"


def reduced(workers: Sequence[Worker], seed: Seed, made: Seed) -> Seed:
    """Return a failing tape with as many words and inputs of the seed as possible."""
    for i, value in enumerate(seed.inputs):
        inputs = (*made.inputs[:i], value, *made.inputs[i + 1 :])
        trial = replace(made, inputs=inputs)
        if made.inputs[i] is not value and outcome(workers, trial.message()).startswith("failed"):
            made = trial
    if len(made.words) != len(seed.words):
        return made
    for i, word in enumerate(seed.words):
        trial = replace(made, words=(*made.words[:i], word, *made.words[i + 1 :]))
        if made.words[i] != word and outcome(workers, trial.message()).startswith("failed"):
            made = trial
    return made


def described(seed: Seed, made: Seed) -> str:
    """Return the damaged words of a tape, and all of them if there are few."""
    lines = [f"the tape of {made.name}, of {len(made.words)} words"]
    if len(made.words) == len(seed.words):
        pairs = zip(seed.words, made.words, strict=True)
        lines += [f"  word {i}: {x} is {y}" for i, (x, y) in enumerate(pairs) if x != y]
    lines += [
        f"  input {i}: {x.dtype}{list(x.shape)} is {y.dtype}{list(y.shape)} {y.ravel()[:4]}"
        for i, ((x, _), (y, _)) in enumerate(zip(seed.inputs, made.inputs, strict=True))
        if x is not y
    ]
    if len(made.words) < 400:
        lines.append(f"  words: {list(made.words)}")
    return "\n".join(lines)


def numbered(
    found: Sequence[Seed], first: int, count: int
) -> Iterator[tuple[int, Seed, Seed, bytes]]:
    """Yield the number, the seed, the damaged seed and its tape."""
    for number in range(first, first + count):
        seed = found[number % len(found)]
        yield number, seed, *damaged(seed, number)


def main() -> int:
    """Run the damaged tapes, and print the answers by kind and the smallest failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=100_000, help="damaged tapes")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--program", type=Path, help="a program that was built before")
    given = parser.parse_args()
    found = seeds()
    kinds: Counter[str] = Counter()
    failures: list[tuple[Seed, Seed, str]] = []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        program = given.program or build(Path(folder))
        workers = [stack.enter_context(Worker(program, fill)) for fill in FILLS]
        for seed in found:
            answer = outcome(workers, seed.message())
            assert answer.startswith(("done", "refused a size")), (seed.name, answer)
        print(f"{len(found)} tapes of models run", flush=True)
        for number, seed, made, tape in numbered(found, given.first, given.number):
            answer = outcome(workers, made.message(tape))
            kinds[answer.split()[0].rstrip(":")] += 1
            if answer == "time":
                print(f"number {number}, {made.name}: above {SECONDS:.0f} s", flush=True)
            if answer.startswith("failed"):
                least = reduced(workers, seed, made)
                failures.append((seed, least, answer))
                print(f"number {number} fails\n{described(seed, least)}\n{answer}", flush=True)
            if len(failures) == MOST_FAILURES:
                break
            if number % 10_000 == 9_999:
                print(
                    f"{number + 1}: {dict(kinds)}, {time.perf_counter() - began:.0f} s", flush=True
                )
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    if failures:
        seed, least, answer = min(failures, key=lambda x: len(x[1].words))
        print(f"the smallest of {len(failures)} failures:\n{described(seed, least)}\n{answer}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
