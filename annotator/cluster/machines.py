"""A machine of a Ray cluster: its name, why it is left out, and the errors when no machine can be used."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from annotator.errors import AnnotatorError


@dataclass
class Machine:
    """A machine of the cluster; subclasses add the work that it has.

    Attributes:
        exclusion_reason: The reason why it is left out; "" if it is not.
    """

    node_id: str
    name: str
    exclusion_reason: str = field(default="", kw_only=True)


def choose_machine_name(node: Mapping[str, Any], machines: Iterable[Machine]) -> str:
    """Return the name of one of Ray's nodes, with a part of its id if another machine has that name."""
    name = node.get("NodeManagerHostname") or node.get("NodeName") or node["NodeID"][:8]
    return name if name not in {machine.name for machine in machines} else f"{name} ({node['NodeID'][:6]})"


def describe_excluded_machines(machines: Iterable[Machine]) -> list[str]:
    """Return one sentence for each machine that is left out, with the reason."""
    return [f"{one.name} is left out: {one.exclusion_reason}" for one in machines if one.exclusion_reason]


def build_no_cores_error(cluster: str) -> AnnotatorError:
    """Return the error for a cluster none of whose machines has a core."""
    return AnnotatorError(
        f"The cluster ({cluster}) offers no cores to work with. Machines join it with: ray start "
        "--address=HEAD:6379 --num-cpus=8"
    )
