"""A policy in a process of its own, in its own interpreter: started, watched, killed, started again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from evalkit.core.errors import PolicyError, PolicyLostError, UserError
from evalkit.core.memory import format_bytes
from evalkit.policy.contract import EpisodeInfo
from evalkit.policy.supervision import MemoryGuard, policy_limit_bytes
from evalkit.policy.wire.connection import CALL_S
from evalkit.policy.worker import frames

WORKER = Path(__file__).with_name("worker") / "__main__.py"
LOAD_S = 600.0
"""Loading a large policy takes minutes."""
LOG_TAIL_BYTES = 3000


class PolicyProcess:
    """One process with one policy. Starts with the first call and again after it was lost.

    Args:
        python: the policy's interpreter.
        form: what is in there: a key of the worker's ``FORMS``.
        options: of the form; plain values.
        name: of the policy, for messages.
        environment: variables added to this process's own.
        call_s: how long a call may take before the process counts as hanging and is killed.
        load_s: how long loading may take.
        memory_bytes: what it may hold, with all it starts; beyond that it is killed. By default what
            ``supervision.LIMIT`` in the environment says.
    """

    def __init__(
        self,
        python: Path,
        form: str,
        options: Mapping[str, Any],
        *,
        name: str,
        environment: Mapping[str, str] | None = None,
        call_s: float = CALL_S,
        load_s: float = LOAD_S,
        memory_bytes: int | None = None,
    ) -> None:
        self._python, self._form, self._options, self._name = python, form, dict(options), name
        self._environment, self._call_s, self._load_s = dict(environment or {}), call_s, load_s
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: MemoryGuard | None = None
        self._log: IO[bytes] | None = None
        self.declared: Any = None
        """What the form says of itself, once it is loaded."""

    @property
    def pid(self) -> int | None:
        """Process id, or None if it isn't running."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start the process and load the policy, if it isn't there.

        Raises:
            UserError: the interpreter can't be started, or the policy can't be loaded in it.
            PolicyLostError: it died or hung while loading.
        """
        if self._process is not None:
            return
        limit = self._memory_bytes or policy_limit_bytes()
        self._log = tempfile.TemporaryFile(prefix="evalkit-policy-")  # noqa: SIM115 - lives as long as the process
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **self._environment}
        for inherited in ("PYTHONHOME", "PYTHONPATH"):
            if inherited not in self._environment:
                environment.pop(inherited, None)
        try:
            self._process = subprocess.Popen(
                [str(self._python), "-u", str(WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=environment,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            self.close()
            raise UserError(f"interpreter {self._python} of policy {self._name} can't be started: {error}") from error
        if limit is not None:
            self._guard = MemoryGuard(self._process.pid, limit)
        request = {"op": "load", "form": self._form, "options": self._options}
        try:
            self.declared = self._exchange(request, self._load_s, "loading")
        except PolicyError as error:
            self.close()
            raise UserError(f"policy {self._name} can't be loaded with {self._python}: {error}") from error

    def call(self, operation: str, *arguments: Any) -> Any:
        """Call a method of the form.

        Raises:
            PolicyError: the policy raised, or broke a rule.
            PolicyLostError: the process died, or gave no answer in time and was killed.
        """
        self.start()
        return self._exchange({"op": operation, "arguments": list(arguments)}, self._call_s, operation)

    def close(self) -> None:
        """End the process and all it started."""
        process, self._process = self._process, None
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.close()
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _exchange(self, request: Mapping[str, Any], limit_s: float, what: str) -> Any:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            frames.send(process.stdin.fileno(), request)
            answer = frames.receive(process.stdout.fileno(), time.monotonic() + limit_s)
        except frames.DeadlineError:
            tail = self._tail()
            self.close()
            message = f"the process of policy {self._name} gave no answer to {what} within {limit_s:g} s and was killed"
            raise PolicyLostError("policy_timeout", message, signal=signal.SIGKILL, traceback_tail=tail) from None
        except frames.ClosedError:
            code = process.wait()
            tail, guard = self._tail(), self._guard
            self.close()
            if guard is not None and guard.found_bytes is not None:
                held, limit = format_bytes(guard.found_bytes), format_bytes(guard.limit_bytes)
                message = f"the process of policy {self._name} held {held} during {what}, more than {limit}; killed"
                raise PolicyLostError("policy_memory", message, signal=code and -code, traceback_tail=tail) from None
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            last = tail.strip().splitlines()[-1:] or ["nothing"]
            message = f"the process of policy {self._name} ended with {how} during {what}; its last words: {last[0]}"
            number = -code if code < 0 else None
            raise PolicyLostError("policy_crash", message, signal=number, traceback_tail=tail) from None
        except frames.GarbledError as garbled:
            tail = self._tail()
            self.close()
            message = f"the answer of policy {self._name}'s process to {what} is no message ({garbled}); it was killed"
            raise PolicyLostError("policy_crash", message, traceback_tail=tail) from None
        except BaseException:
            self.close()  # interrupted between request and answer: the pipe can't be trusted any more
            raise
        if error := answer.get("error"):
            raise PolicyError(error["kind"], error["message"])
        return answer["value"]

    def _tail(self) -> str:
        if self._log is None:
            return ""
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - LOG_TAIL_BYTES))
        return self._log.read().decode(errors="replace")


class ProcessChannel:
    """A policy's process as a ``Channel``.

    Args:
        process: closed with it.
    """

    def __init__(self, process: PolicyProcess) -> None:
        self._process = process

    def reset(self, info: EpisodeInfo) -> None:
        """See ``Channel``."""
        self._process.call("reset", episode_values(info))

    def infer(self, session: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """See ``Channel``."""
        answer: Mapping[str, Any] = self._process.call("act", session, dict(request))
        return answer

    def end(self, session: str, success: bool | None) -> None:
        """See ``Channel``. A process that was lost isn't started again for this."""
        declared = self._process.declared
        if self._process.pid is not None and isinstance(declared, dict) and declared.get("ends"):
            self._process.call("end", session, success)

    def close(self) -> None:
        """See ``Channel``."""
        self._process.close()


def episode_values(info: EpisodeInfo) -> dict[str, Any]:
    """The start of an episode as plain values."""
    return {
        "session": info.session,
        "instruction": info.instruction,
        "policy_seed": info.policy_seed,
        "horizon_steps": info.horizon_steps,
        "demonstration": info.demonstration,
    }
