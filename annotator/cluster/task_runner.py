"""Calls of one function on the machines of a Ray cluster.

Lost calls are resent here, because Ray's own retries would reach excluded machines. CALLS_PER_CORE bounds
memory. A very slow call is sent to a second, idle machine, and the first result counts.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotator.cluster.connection import ClusterUse, build_cluster_lost_error, build_missing_program_error
from annotator.cluster.machines import (
    Machine,
    build_no_cores_error,
    choose_machine_name,
    describe_excluded_machines,
)
from annotator.cluster.package_versions import find_version_mismatch, get_package_versions
from annotator.errors import combine_problems

CALLS_PER_CORE = 2  # calls for each core: one running, one waiting
MAX_LOSSES = 3  # processes that may die at a call before the call fails
MACHINE_CHECK_SECONDS = 2.0  # between two looks for new machines
WAIT_SECONDS = 0.2  # for an answer, before the caller may report
NO_MACHINE_SECONDS = 30.0  # until a cluster without cores is given up
STRAGGLER_FACTOR, MIN_STRAGGLER_SECONDS = 4.0, 10.0  # times the mean, and at least: then a call is sent again


@dataclass(frozen=True)
class CallResult:
    """The result or error of a call, with its key and machine."""

    key: Any
    result: Any
    error: Exception | None
    machine: str


@dataclass
class TaskMachine(Machine):
    """A machine of the cluster, with its running calls."""

    # parallel calls. Each reserves `cores_per_call` of Ray's cores
    cores: int
    cores_per_call: float
    # reference to the running check of the machine, None once it has finished
    pending_check: Any
    sees_files: bool = False
    # calls sent and not finished
    calls: int = 0
    # calls lost in a row. The machine gets none until `rests_until` (monotonic seconds)
    failures: int = 0
    rests_until: float = 0.0

    @property
    def has_room(self) -> bool:
        """Return whether the machine can take another call."""
        is_ready = self.pending_check is None and not self.exclusion_reason and time.monotonic() >= self.rests_until
        return is_ready and self.calls < CALLS_PER_CORE * self.cores

    def record_failure(self, reason: str) -> None:
        """Count a call that the machine lost, and exclude it after MAX_LOSSES in a row."""
        self.failures += 1
        self.rests_until = time.monotonic() + MACHINE_CHECK_SECONDS
        if self.failures >= MAX_LOSSES:
            self.exclusion_reason = f"loses its work ({reason})"


@dataclass(eq=False)
class _Call:
    key: Any
    losses: int = 0
    copies_out: int = 0  # how often it is out now
    sent_at: float = 0.0  # when it was sent last
    is_over: bool = False


@dataclass
class TaskRunner:
    """A runner of `function(shared, argument)` calls on the machines of a cluster."""

    ray: Any
    use: ClusterUse
    # module-level function that every machine has
    function: Callable[[Any, Any], Any]
    # first argument of all calls, sent to the cluster once
    shared: Any
    # (path, bytes) that each machine checks for, see `TaskMachine.sees_files`
    files: list[tuple[Path, int]] = field(default_factory=list)
    machines: dict[str, TaskMachine] = field(default_factory=dict, init=False)
    mean_seconds: float = field(default=0.0, init=False)  # of a call
    _pending: dict[Any, tuple[_Call, TaskMachine]] = field(default_factory=dict, init=False)

    def __post_init__(self):
        self._looked_at = -math.inf
        self._began = time.monotonic()
        try:
            self._shared = self.ray.put(self.shared)
            self._ask, self._call = self.ray.remote(_check_machine), self.ray.remote(self.function)
        except ImportError as error:
            raise build_missing_program_error(self.use, error) from error

    @property
    def exclusion_sentences(self) -> list[str]:
        """Return one sentence per excluded machine."""
        return describe_excluded_machines(self.machines.values())

    def iterate_results(
        self, keys: Iterable[Any], make_argument: Callable[[Any, TaskMachine], Any]
    ) -> Generator[CallResult | None]:
        """Yield each call's result, and None after every wait, so that the caller can act.

        Args:
            keys: Taken when a machine is free.

        Yields:
            One CallResult per key, perhaps with an error.

        Raises:
            AnnotatorError: The cluster is lost or unusable.
        """
        waiting, again, is_over = iter(keys), deque[_Call](), False
        try:
            while True:
                self._refresh_machines()
                while (machine := self._find_free_machine()) is not None:
                    call = again.popleft() if again else None
                    if call is None and not is_over:
                        key = next(waiting, _NO_MORE)
                        is_over = key is _NO_MORE
                        call = None if is_over else _Call(key)
                    call = call or self._find_straggler()
                    if call is None:
                        break
                    self._send_call(call, machine, make_argument(call.key, machine))
                if is_over and not again and all(call.is_over for call, _ in self._pending.values()):
                    return
                for reference in self._wait_for_results():
                    done = self._receive_result(reference, again)
                    if done is not None:
                        yield done
                yield None
        except ConnectionError as error:
            raise build_cluster_lost_error(self.use, error) from error
        except ImportError as error:  # through ray:// the head unpacks the function
            raise build_missing_program_error(self.use, error) from error
        finally:
            for reference in self._pending:
                self._cancel(reference)
            self._pending.clear()
            for machine in self.machines.values():
                machine.calls = 0

    # -- machines

    def _refresh_machines(self) -> None:
        if time.monotonic() - self._looked_at < MACHINE_CHECK_SECONDS:
            return
        self._looked_at = time.monotonic()
        alive = {node["NodeID"]: node for node in self.ray.nodes() if node["Alive"]}
        for node_id in [node_id for node_id in self.machines if node_id not in alive]:
            del self.machines[node_id]
        for node_id, node in alive.items():
            cores = node["Resources"].get("CPU", 0.0)
            if node_id not in self.machines and cores > 0:
                share = min(1.0, cores)
                asked = self._bind_to_machine(self._ask, node_id, share).remote(get_package_versions(), self.files)
                name = choose_machine_name(node, self.machines.values())
                self.machines[node_id] = TaskMachine(node_id, name, max(1, int(cores)), share, asked)
        if self.machines and all(machine.exclusion_reason for machine in self.machines.values()):
            raise combine_problems(
                f"No machine of the cluster ({self.use.cluster}) can do this:",
                [f"{machine.name} {machine.exclusion_reason}" for machine in self.machines.values()],
            )
        if not self.machines and time.monotonic() - self._began > NO_MACHINE_SECONDS:
            raise build_no_cores_error(self.use.cluster)

    def _find_free_machine(self) -> TaskMachine | None:
        free = [machine for machine in self.machines.values() if machine.has_room]
        return min(free, key=lambda machine: machine.calls / machine.cores, default=None)

    # -- calls

    def _send_call(self, call: _Call, machine: TaskMachine, argument: Any) -> None:
        on_machine = self._bind_to_machine(self._call, machine.node_id, machine.cores_per_call)
        reference = on_machine.remote(self._shared, self.ray.put(argument))  # ray:// is slow with large arguments
        call.copies_out, call.sent_at = call.copies_out + 1, time.monotonic()
        machine.calls += 1
        self._pending[reference] = call, machine

    def _bind_to_machine(self, function: Any, node_id: str, share: float) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(node_id, soft=False)
        return function.options(num_cpus=share, max_retries=0, scheduling_strategy=here)

    def _find_straggler(self) -> _Call | None:
        """Return the oldest running call if it takes so long that its machine may hang, else None."""
        patience = max(MIN_STRAGGLER_SECONDS, STRAGGLER_FACTOR * CALLS_PER_CORE * self.mean_seconds)
        calls = [call for call, _ in self._pending.values() if call.copies_out == 1 and not call.is_over]
        oldest = min(calls, key=lambda call: call.sent_at, default=None)
        slow = oldest is not None and self.mean_seconds and time.monotonic() - oldest.sent_at > patience
        return oldest if slow else None

    def _wait_for_results(self) -> list[Any]:
        """Return the references of finished calls, waiting at most WAIT_SECONDS."""
        waiting = [machine.pending_check for machine in self.machines.values() if machine.pending_check is not None]
        waiting += self._pending
        if not waiting:
            time.sleep(WAIT_SECONDS)
            return []
        ready, _ = self.ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return ready or self.ray.wait(waiting, num_returns=1, timeout=WAIT_SECONDS)[0]

    def _receive_result(self, reference: Any, again: deque[_Call]) -> CallResult | None:
        if reference not in self._pending:
            self._store_machine_answer(reference)
            return None
        call, machine = self._pending.pop(reference)
        machine.calls -= 1
        call.copies_out -= 1
        result, error = None, None
        try:
            result = self.ray.get(reference)
        except ConnectionError:
            raise
        except self.ray.exceptions.RayTaskError as raised:  # by the function
            error = raised
        except self.ray.exceptions.RayError as gone:  # its process, or its machine
            if isinstance(gone, (self.ray.exceptions.WorkerCrashedError, self.ray.exceptions.OutOfMemoryError)):
                call.losses += 1
            else:
                machine.record_failure(str(gone).strip().splitlines()[0])
            if call.losses < MAX_LOSSES:
                if not call.copies_out and not call.is_over:
                    again.append(call)
                return None
            error = gone
        if call.is_over:  # it was sent twice
            return None
        call.is_over = True
        if error is None:
            machine.failures = 0
            seconds = time.monotonic() - call.sent_at
            self.mean_seconds = 0.8 * self.mean_seconds + 0.2 * seconds if self.mean_seconds else seconds
        return CallResult(call.key, result, error, machine.name)

    def _store_machine_answer(self, reference: Any) -> None:
        """Store the result of a machine's fitness check."""
        machine = next((machine for machine in self.machines.values() if machine.pending_check == reference), None)
        if machine is None:
            return
        machine.pending_check = None
        try:
            machine.exclusion_reason, machine.sees_files = self.ray.get(reference)
        except ConnectionError:
            raise
        except Exception as error:  # Ray's own errors, or those of an incomplete program
            text = [line.strip() for line in str(error).splitlines() if "Error" in line] or [type(error).__name__]
            machine.exclusion_reason = f"has no complete annotator, or ended ({text[-1]})"
        self._looked_at = -math.inf

    def _cancel(self, reference: Any) -> None:
        try:
            self.ray.cancel(reference, force=True)
        except Exception:  # it is over, or the cluster is
            return


_NO_MORE = object()


def _check_machine(wanted: dict[str, str], files: list[tuple[Path, int]]) -> tuple[str, bool]:
    """Return this machine's version mismatch ("" if none), and whether it can read the files."""
    return find_version_mismatch(wanted), bool(files) and all(_has_file(path, size) for path, size in files)


def _has_file(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False
