"""A Ray cluster of several nodes on this machine, in a process of its own: python ray_nodes.py CPUS GPUS.

Two nodes are started and the address is printed. Then one word per line: `kill` takes the second node away as a power
cut would, `add` brings another; each is answered with `done`. The cluster ends with the input.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from typing import Any


class RayNodes:
    """The test's side."""

    def __init__(self, cpus: int, gpus: int = 0) -> None:
        self.secret = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(cpus), str(gpus)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL, env={**os.environ, **self.secret},
        )  # fmt: skip
        self.address = self._heard()
        assert self.address, "the cluster did not start"

    def _heard(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def tell(self, word: str) -> None:
        """`kill` or `add`."""
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        assert self._heard() == "done"

    def __enter__(self) -> RayNodes:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(120)
        self._process.stdout.close()


def main(cpus: int, gpus: int) -> None:
    from ray.cluster_utils import Cluster

    size: dict[str, Any] = {"num_cpus": cpus, "num_gpus": gpus, "object_store_memory": 100_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**size, "include_dashboard": False})
    second = cluster.add_node(**size)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            cluster.remove_node(second, allow_graceful=False)
        else:
            second = cluster.add_node(**size)
        print("done", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
