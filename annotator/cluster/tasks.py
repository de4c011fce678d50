"""Calls of one function on the machines of a Ray cluster, as many at a time as there are cores.

Each call is a task of Ray's on a machine that was asked first whether it can do the work. Calls that are lost with a
process or a machine are sent again; Ray's own retries are off, because it would send them to a machine that
cannot do them either. Nothing is made before it can be sent, and a machine has AHEAD calls for each core: that bounds
the memory of both sides. A call that takes far longer than the others is sent a second time when there is nothing else
to do, and the first answer counts.

Ray Tune is not used for trials of settings: what it adds are schedulers that stop trials early and searchers, and the
trials here are a fixed list, the same for every method, all carried through.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from annotator.cluster.connection import Use, lost, without_program
from annotator.cluster.versions import refusal, versions
from annotator.errors import AnnotatorError, several

AHEAD = 2  # calls for each core: one running, one waiting
LOSSES = 3  # processes that may die at a call before the call fails
LOOK_SECONDS = 2.0  # between two looks for new machines
WAIT_SECONDS = 0.2  # for an answer, before the caller may report
NO_MACHINE_SECONDS = 30.0  # until a cluster without cores is given up
STRAGGLING_TIMES, STRAGGLING_SECONDS = 4.0, 10.0  # times the mean, and at least: then a call is sent again


@dataclass(frozen=True)
class Done:
    """The end of a call: its key, the result of the function or the error, and the machine's name."""

    key: Any
    result: Any
    error: Exception | None
    machine: str


@dataclass
class Machine:
    """A machine of the cluster.

    Attributes:
        cores: The number of calls at once; each is counted as `share` of one of Ray's cores.
        starting: A reference to its answer whether it can do the work; None once it has answered.
        sees: Whether it can read the files of Tasks.files.
        reason: The reason why it is left out; "" if it is not.
        calls: The number of calls that it has.
        failures: The number of calls in a row that it could not do; until `rests_until` it gets no other for that.
    """

    node_id: str
    name: str
    cores: int
    share: float
    starting: Any
    sees: bool = False
    reason: str = ""
    calls: int = 0
    failures: int = 0
    rests_until: float = 0.0

    @property
    def has_room(self) -> bool:
        """Return whether the machine can take another call now."""
        is_ready = self.starting is None and not self.reason and time.monotonic() >= self.rests_until
        return is_ready and self.calls < AHEAD * self.cores

    def note_failure(self, why: str) -> None:
        """Count a call that the machine lost through no fault of the call; after LOSSES in a row it is left out."""
        self.failures += 1
        self.rests_until = time.monotonic() + LOOK_SECONDS
        if self.failures >= LOSSES:
            self.reason = f"loses its work ({why})"


@dataclass(eq=False)
class _Call:
    key: Any
    losses: int = 0
    sent: int = 0  # how often it is out now
    at: float = 0.0  # when it was sent last
    is_over: bool = False


@dataclass
class Tasks:
    """The calls of `function(shared, argument)` on the machines of a cluster.

    Attributes:
        use: The use of the cluster, for messages.
        function: A function of a module that every machine has.
        shared: The first argument of all calls; it is sent to the cluster once.
        files: (path, bytes) that each machine is asked to look for, for `Machine.sees`.
    """

    ray: Any
    use: Use
    function: Callable[[Any, Any], Any]
    shared: Any
    files: list[tuple[Path, int]] = field(default_factory=list)
    machines: dict[str, Machine] = field(default_factory=dict, init=False)
    mean_seconds: float = field(default=0.0, init=False)  # of a call
    _out: dict[Any, tuple[_Call, Machine]] = field(default_factory=dict, init=False)

    def __post_init__(self):
        self._looked_at = -math.inf
        self._began = time.monotonic()
        try:
            self._shared = self.ray.put(self.shared)
            self._ask, self._call = self.ray.remote(_can_work), self.ray.remote(self.function)
        except ImportError as error:
            raise without_program(self.use, error) from error

    @property
    def left_out(self) -> list[str]:
        """One sentence for each machine that cannot do the work, with the reason."""
        return [f"{machine.name} is left out: {machine.reason}" for machine in self.machines.values() if machine.reason]

    def results(self, keys: Iterable[Any], argument: Callable[[Any, Machine], Any]) -> Generator[Done | None]:
        """Yield the result of each call as it ends, and None after every round of waiting, so that the caller can act.

        Args:
            keys: One for each call; the next key is taken only when a machine is free.
            argument: Makes the argument of a call for a machine.

        Yields:
            One Done for each key; with the error if the function raised one, or if LOSSES processes died at it.

        Raises:
            AnnotatorError: No machine can do the work, or the cluster is gone.
        """
        waiting, again, is_over = iter(keys), deque[_Call](), False
        try:
            while True:
                self._look_at_machines()
                while (machine := self._free_machine()) is not None:
                    call = again.popleft() if again else None
                    if call is None and not is_over:
                        key = next(waiting, _NO_MORE)
                        is_over = key is _NO_MORE
                        call = None if is_over else _Call(key)
                    call = call or self._straggler()
                    if call is None:
                        break
                    self._send(call, machine, argument(call.key, machine))
                if is_over and not again and all(call.is_over for call, _ in self._out.values()):
                    return
                for reference in self._ready():
                    done = self._take_in(reference, again)
                    if done is not None:
                        yield done
                yield None
        except ConnectionError as error:
            raise lost(self.use, error) from error
        except ImportError as error:  # through ray:// the head unpacks the function
            raise without_program(self.use, error) from error
        finally:
            for reference in self._out:
                self._cancel(reference)
            self._out.clear()
            for machine in self.machines.values():
                machine.calls = 0

    # -- machines

    def _look_at_machines(self) -> None:
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        alive = {node["NodeID"]: node for node in self.ray.nodes() if node["Alive"]}
        for node_id in [node_id for node_id in self.machines if node_id not in alive]:
            del self.machines[node_id]
        for node_id, node in alive.items():
            cores = node["Resources"].get("CPU", 0.0)
            if node_id not in self.machines and cores > 0:
                share = min(1.0, cores)
                asked = self._on(self._ask, node_id, share).remote(versions(), self.files)
                self.machines[node_id] = Machine(node_id, self._name(node), max(1, int(cores)), share, asked)
        if self.machines and all(machine.reason for machine in self.machines.values()):
            raise several(
                f"No machine of the cluster ({self.use.on}) can do this:",
                [f"{machine.name} {machine.reason}" for machine in self.machines.values()],
            )
        if not self.machines and time.monotonic() - self._began > NO_MACHINE_SECONDS:
            raise AnnotatorError(
                f"The cluster ({self.use.on}) offers no cores to work with. Machines join it with: "
                "ray start --address=HEAD:6379 --num-cpus=8"
            )

    def _name(self, node: dict[str, Any]) -> str:
        name = node.get("NodeManagerHostname") or node.get("NodeName") or node["NodeID"][:8]
        taken = {machine.name for machine in self.machines.values()}
        return name if name not in taken else f"{name} ({node['NodeID'][:6]})"

    def _free_machine(self) -> Machine | None:
        """Return the machine with room that has the fewest calls for its cores; None if all are full."""
        free = [machine for machine in self.machines.values() if machine.has_room]
        return min(free, key=lambda machine: machine.calls / machine.cores, default=None)

    # -- calls

    def _send(self, call: _Call, machine: Machine, argument: Any) -> None:
        on_machine = self._on(self._call, machine.node_id, machine.share)
        reference = on_machine.remote(self._shared, self.ray.put(argument))  # ray:// is slow with large arguments
        call.sent, call.at = call.sent + 1, time.monotonic()
        machine.calls += 1
        self._out[reference] = call, machine

    def _on(self, function: Any, node_id: str, share: float) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(node_id, soft=False)
        return function.options(num_cpus=share, max_retries=0, scheduling_strategy=here)

    def _straggler(self) -> _Call | None:
        """Return the oldest call if it takes so long that its machine may hang, else None."""
        patience = max(STRAGGLING_SECONDS, STRAGGLING_TIMES * AHEAD * self.mean_seconds)
        calls = [call for call, _ in self._out.values() if call.sent == 1 and not call.is_over]
        oldest = min(calls, key=lambda call: call.at, default=None)
        slow = oldest is not None and self.mean_seconds and time.monotonic() - oldest.at > patience
        return oldest if slow else None

    def _ready(self) -> list[Any]:
        """Return the references that are ready, after at most WAIT_SECONDS."""
        waiting = [machine.starting for machine in self.machines.values() if machine.starting is not None]
        waiting += self._out
        if not waiting:
            time.sleep(WAIT_SECONDS)
            return []
        ready, _ = self.ray.wait(waiting, num_returns=len(waiting), timeout=0)
        return ready or self.ray.wait(waiting, num_returns=1, timeout=WAIT_SECONDS)[0]

    def _take_in(self, reference: Any, again: deque[_Call]) -> Done | None:
        if reference not in self._out:
            self._note_machine(reference)
            return None
        call, machine = self._out.pop(reference)
        machine.calls -= 1
        call.sent -= 1
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
                machine.note_failure(str(gone).strip().splitlines()[0])
            if call.losses < LOSSES:
                if not call.sent and not call.is_over:
                    again.append(call)
                return None
            error = gone
        if call.is_over:  # it was sent twice
            return None
        call.is_over = True
        if error is None:
            machine.failures = 0
            seconds = time.monotonic() - call.at
            self.mean_seconds = 0.8 * self.mean_seconds + 0.2 * seconds if self.mean_seconds else seconds
        return Done(call.key, result, error, machine.name)

    def _note_machine(self, reference: Any) -> None:
        """Store a machine's answer to the question whether it can do the work, or the reason why it cannot."""
        machine = next((machine for machine in self.machines.values() if machine.starting == reference), None)
        if machine is None:
            return
        machine.starting = None
        try:
            machine.reason, machine.sees = self.ray.get(reference)
        except ConnectionError:
            raise
        except Exception as error:  # Ray's own errors, or those of an incomplete program
            text = [line.strip() for line in str(error).splitlines() if "Error" in line] or [type(error).__name__]
            machine.reason = f"has no complete annotator, or ended ({text[-1]})"
        self._looked_at = -math.inf

    def _cancel(self, reference: Any) -> None:
        try:
            self.ray.cancel(reference, force=True)
        except Exception:  # it is over, or the cluster is
            return


_NO_MORE = object()


def _can_work(wanted: dict[str, str], files: list[tuple[Path, int]]) -> tuple[str, bool]:
    """Return the reason why this machine of the cluster cannot work ("" if it can), and whether it sees these files."""
    return refusal(wanted), bool(files) and all(_has(path, size) for path, size in files)


def _has(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False
