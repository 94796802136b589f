"""Try many random graphs in several processes: ``python -m tests.fuzz --graphs 20000 --seed 0``."""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.fuzz.run import try_chunk

CHUNK = 100


def main() -> int:
    """Run the command; the exit status is 1 where a graph failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--graphs", type=int, default=2000, help="number of graphs")
    parser.add_argument("--seed", type=int, default=0, help="other seeds try other graphs")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="to run at once")
    arguments = parser.parse_args()
    started, done, failures = time.perf_counter(), 0, 0
    unsupported: Counter[str] = Counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(arguments.processes, mp_context=context) as pool:
        chunks = [min(CHUNK, arguments.graphs - i) for i in range(0, arguments.graphs, CHUNK)]
        seeds = {
            pool.submit(try_chunk, graphs, arguments.seed * 1_000_000 + i): (graphs, i)
            for i, graphs in enumerate(chunks)
        }
        for future in as_completed(seeds):
            failure, more = future.result()
            unsupported += more
            done += seeds[future][0]
            if failure is not None:
                failures += 1
                print(f"\nFAILURE {failures} (chunk {seeds[future][1]})\n{failure}", flush=True)
            passed = time.perf_counter() - started
            print(f"{done} graphs, {failures} failures, {passed:.0f} s", flush=True)
    for text, count in unsupported.most_common():
        print(f"\nnot supported, {count} graphs:\n{text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
