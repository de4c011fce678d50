"""The machines of a Ray cluster: names, reasons for exclusion, and the error if none is usable."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from annotator.errors import AnnotatorError


@dataclass
class Machine:
    """A machine of the cluster. Subclasses add its work."""

    node_id: str
    name: str
    # why the machine is not used, or ""
    exclusion_reason: str = field(default="", kw_only=True)


def choose_machine_name(node: Mapping[str, Any], machines: Iterable[Machine]) -> str:
    """Return the name of one of Ray's nodes, with a part of its id if another machine has that name."""
    name = node.get("NodeManagerHostname") or node.get("NodeName") or node["NodeID"][:8]
    return name if name not in {machine.name for machine in machines} else f"{name} ({node['NodeID'][:6]})"


def describe_excluded_machines(machines: Iterable[Machine]) -> list[str]:
    """Return one sentence per excluded machine, with the reason."""
    return [f"{one.name} is left out: {one.exclusion_reason}" for one in machines if one.exclusion_reason]


def build_no_cores_error(cluster: str) -> AnnotatorError:
    """Return the error for a cluster whose machines have no cores."""
    return AnnotatorError(
        f"The cluster ({cluster}) offers no cores to work with. Machines join it with: ray start "
        "--address=HEAD:6379 --num-cpus=8"
    )
