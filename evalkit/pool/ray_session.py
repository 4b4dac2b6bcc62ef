"""Starting and ending Ray without surprises."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from evalkit.core.errors import UserError

OBJECT_STORE_BYTES = 200 * 1024 * 1024
"""Observations are below 1 MB each and live for one decision."""

# Read when Ray is imported: no usage reports, no rebuilt environments, and no GPUs hidden from simulators, which
# render on them without reserving one.
for _name, _value in {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}.items():
    os.environ.setdefault(_name, _value)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.simplefilter("ignore", FutureWarning)
    import ray

__all__ = ["ray", "ray_session"]


@contextmanager
def ray_session(workers: int, address: str | None = None) -> Iterator[None]:
    """Ray for the time of the ``with`` block: a cluster's, this process's own, or the one that runs already.

    Args:
        workers: sim actors that will be started.
        address: address of a running cluster, or None to start Ray on this machine.
    """
    if ray.is_initialized():
        yield
        return
    options = {} if address else {"num_cpus": workers + 1, "object_store_memory": OBJECT_STORE_BYTES}
    # Ray prints notices about dead workers on standard output, which belongs to results.
    with warnings.catch_warnings(), redirect_stdout(sys.stderr):
        warnings.filterwarnings("ignore", category=FutureWarning, module="ray")
        warnings.filterwarnings("ignore", category=ResourceWarning)
        ray.init(
            address=address or "local",
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            **options,
        )
        try:
            slots = int(ray.cluster_resources().get("CPU", 0))
            if slots < workers + 1:
                raise UserError(
                    f"{workers} workers and the policy need {workers + 1} CPUs; the Ray cluster at {address} has "
                    f"{slots}: lower --workers"
                )
            yield
        finally:
            ray.shutdown()
