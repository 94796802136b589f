"""Try many random graphs in several processes: ``python -m tests.fuzz --graphs 20000 --seed 0``.

``--loops`` tries graphs with loops and branches.
"""

import argparse
import os
import sys
import time

from tests.fuzz.run import Chunk, search

CHUNK = 100


def main() -> int:
    """Run the command; the exit status is 1 where a graph failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--graphs", type=int, default=2000, help="number of graphs")
    parser.add_argument("--seed", type=int, default=0, help="other seeds try other graphs")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="to run at once")
    parser.add_argument("--loops", action="store_true", help="only graphs with loops, branches")
    arguments = parser.parse_args()
    started, done, failures, rewritten = time.perf_counter(), 0, 0, 0
    first = arguments.seed * 1_000_000
    chunks = [
        Chunk(min(CHUNK, arguments.graphs - i), first + i // CHUNK, arguments.loops)
        for i in range(0, arguments.graphs, CHUNK)
    ]
    for chunk, found in search(chunks, arguments.processes):
        done += chunk.graphs
        rewritten += found.rewritten
        for failure in found.failures:
            failures += 1
            print(f"\nFAILURE {failures} (chunk {chunk.seed - first})\n{failure}", flush=True)
        passed = time.perf_counter() - started
        print(f"{done} graphs, {failures} failures, {passed:.0f} s", flush=True)
    print(f"{rewritten} graphs are as PyTensor's rewrites leave them at infinities and NaN")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
