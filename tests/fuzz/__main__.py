"""Try many random graphs in several processes: ``python -m tests.fuzz --graphs 20000 --seed 0``.

``--loops`` tries graphs with loops and branches.
"""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.fuzz.run import limit_memory, search_seed

CHUNK = 100


def main() -> int:
    """Run the command; the exit status is 1 where a graph failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--graphs", type=int, default=2000, help="number of graphs")
    parser.add_argument("--seed", type=int, default=0, help="other seeds try other graphs")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="to run at once")
    parser.add_argument("--loops", action="store_true", help="only graphs with loops, branches")
    arguments = parser.parse_args()
    started, done, failures = time.perf_counter(), 0, 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        arguments.processes, mp_context=context, initializer=limit_memory
    ) as pool:
        chunks = [min(CHUNK, arguments.graphs - i) for i in range(0, arguments.graphs, CHUNK)]
        chunks_running = {
            pool.submit(search_seed, graphs, arguments.seed * 1_000_000 + i, arguments.loops): (
                graphs,
                i,
            )
            for i, graphs in enumerate(chunks)
        }
        for future in as_completed(chunks_running):
            graphs, chunk = chunks_running[future]
            done += graphs
            for failure in future.result():
                failures += 1
                print(f"\nFAILURE {failures} (chunk {chunk})\n{failure}", flush=True)
            passed = time.perf_counter() - started
            print(f"{done} graphs, {failures} failures, {passed:.0f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
