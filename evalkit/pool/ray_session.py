"""Starting, joining and ending Ray without surprises."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from evalkit.core.errors import UserError
from evalkit.pool.head_watch import HeadWatch, split_address

OBJECT_STORE_BYTES = 200 * 1024 * 1024
"""Observations are below 1 MB each and live for one decision."""
REACH_S = 5.0
"""For an answer of the address, at each of two steps. Ray tries for two minutes."""

# Read when Ray is imported: no usage reports, no rebuilt environments, and no GPUs hidden from simulators, which
# render on them without reserving one.
RAY_VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
for _name, _value in RAY_VARIABLES.items():
    os.environ.setdefault(_name, _value)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    warnings.simplefilter("ignore", FutureWarning)
    import ray

__all__ = ["head_is_lost", "on_node", "ray", "ray_session", "why_it_died"]

_HTTP2_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_HTTP2_SETTINGS = 4
_watch: HeadWatch | None = None


def on_node(node: str) -> Any:
    """Ray's way to say that an actor or a task belongs to one node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node_id=node, soft=False)


def why_it_died(error: BaseException) -> str:
    """Ray's account of a death in one line: the worker's last words if there are any, without guesses at causes."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    detail = re.search(r"Worker exit detail: (.*?)(?: Some common causes|$)", " ".join(lines))
    return detail[1] if detail else lines[0]


def head_is_lost() -> bool:
    """Whether Ray's head is gone: every call to Ray would hang."""
    return _watch is not None and _watch.is_lost


@contextmanager
def ray_session(
    workers: int, address: str | None = None, on_lost: Callable[[str], None] = lambda reason: None
) -> Iterator[None]:
    """Ray for the time of the ``with`` block: a cluster's, this process's own, or the one that runs already.

    In the block standard output goes to standard error: Ray prints notices there, and it belongs to results.

    Args:
        workers: sim actors that will be started; 0 if that is found out later.
        address: ``HOST:PORT`` of a running cluster's head, or ``auto`` for the one this machine belongs to; None to
            start Ray on this machine.
        on_lost: called with the reason, by another thread, if the head is lost. Ray isn't asked to end then.

    Raises:
        UserError: there is no cluster at the address, it is of another version, or it is too small.
    """
    global _watch
    if ray.is_initialized():
        with redirect_stdout(sys.stderr):
            yield
        return
    with warnings.catch_warnings(), redirect_stdout(sys.stderr):
        warnings.filterwarnings("ignore", category=FutureWarning, module="ray")
        warnings.filterwarnings("ignore", category=ResourceWarning)
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is not None:
            _join(find_head(address), quiet)
        else:
            with _children_ignore(signal.SIGHUP, signal.SIGUSR1):
                options = {"num_cpus": workers + 1, "object_store_memory": OBJECT_STORE_BYTES}
                ray.init(address="local", include_dashboard=False, **options, **quiet)
        # A head of one's own lives and dies with this process.
        watch = _watch = HeadWatch(ray.get_runtime_context().gcs_address, on_lost) if address is not None else None
        try:
            slots = int(ray.cluster_resources().get("CPU", 0))
            if workers and slots < workers + 1:
                raise UserError(
                    f"{workers} workers and the policy need {workers + 1} CPUs; the Ray cluster at {address} has "
                    f"{slots}: lower --workers"
                )
            yield
        finally:
            if watch is not None:
                watch.close()
            if not head_is_lost():
                ray.shutdown()
                _watch = None


def find_head(address: str) -> str:
    """The address of a cluster's head, once something answers there.

    Raises:
        UserError: nothing does, or it isn't Ray.
    """
    given = address
    if address == "auto":
        from ray._private.services import canonicalize_bootstrap_address_or_die  # what ray.init does with "auto"

        try:
            address = str(canonicalize_bootstrap_address_or_die("auto"))
        except ConnectionError as error:
            raise UserError(f"--ray-address auto: {' '.join(str(error).split())}") from error
        given = f"auto, which is {address}"
    try:
        host, port = split_address(address)
    except ValueError:
        raise UserError(f"--ray-address {given}: give HOST:PORT of Ray's head, or auto") from None
    try:
        with socket.create_connection((host, port), timeout=REACH_S) as connection:
            connection.settimeout(REACH_S)
            connection.sendall(_HTTP2_HELLO)
            answer = connection.recv(9)
    except OSError as error:
        raise UserError(
            f"--ray-address {given}: nothing answers there ({error.strerror or error}): is Ray's head running "
            "(ray start --head), and is that its port?"
        ) from error
    if len(answer) < 4 or answer[3] != _HTTP2_SETTINGS:
        raise UserError(
            f"--ray-address {given}: what listens there isn't Ray's head; its port is the one ray start --head "
            "printed, 6379 if none was chosen, and neither the dashboard's nor the one for ray://"
        )
    return address


def _join(address: str, quiet: dict[str, Any]) -> None:
    # Nodes were started by somebody else, in another environment.
    variables = {name: value for name, value in os.environ.items() if name.startswith("EVALKIT_")}
    variables["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"]
    try:
        ray.init(address=address, runtime_env={"env_vars": variables}, **quiet)
    except (RuntimeError, ConnectionError, ValueError, ray.exceptions.RayError) as error:
        what = " ".join(str(error).split())
        if "version mismatch" in what.lower():
            raise UserError(f"--ray-address {address}: {what}") from error
        # `ray start --head` asks for a token unless told otherwise; everybody else offers one only if told to.
        mode = os.environ.get("RAY_AUTH_MODE", "not set")
        raise UserError(
            f"--ray-address {address}: can't join the cluster; start evalkit on one of its nodes, as the user who "
            f"started Ray, with RAY_AUTH_MODE=token if the head asks for tokens (here it is {mode}) ({what[:400]})"
        ) from error


@contextmanager
def _children_ignore(*signals: signal.Signals) -> Iterator[None]:
    """Processes started in the block ignore these signals, which a terminal or a queue system sends to all of a job."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
