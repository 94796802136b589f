"""Build the network that the first line names, and run the functions that the others name."""

import json
import sys
from importlib import import_module


def main() -> None:
    """Serve the lines of the standard input."""
    try:
        import torch
    except ImportError as error:
        print(error, flush=True)
        return
    print("ready", flush=True)
    torch.manual_seed(0)
    given = json.loads(sys.stdin.readline())
    network = import_module(f"benchmarks.torch_networks.{given.pop('network')}")
    calls = network.calls(**given)
    print("done", flush=True)
    for line in sys.stdin:
        calls[json.loads(line)["what"]]()
        print("done", flush=True)


if __name__ == "__main__":
    main()
