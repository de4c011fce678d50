"""The state of a long training in one file, written after every epoch and read to continue the training.

The file is in torch's format and read with weights_only: tensors, numbers, strings, lists and dictionaries, no objects
that could run code. It is replaced atomically: after a kill it is the old or the new one.
"""

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from models.losses.base import Loss
from models.methods.base import Method

PLAIN = (int, float, bool, str, type(None))


def state_of(method: Method | Loss) -> dict[str, Any]:
    """The state of a method since `begin`, from which `give_back` continues its training.

    It holds every attribute that is a tensor, an array, a number, a string, or a list or dictionary of these; the state
    of a random generator; the attributes of a loss; and the state_dict of another torch module. A method that keeps its
    state in such attributes needs no code of its own.

    Raises TypeError naming an attribute of another kind.
    """
    return {
        name: _packed(value, f"{type(method).__name__}.{name}")
        for name, value in vars(method).items()
        if not (isinstance(method, nn.Module) and name in nn.Module().__dict__) and not _is_function(value)
    }


def give_back(method: Method | Loss, state: Mapping[str, Any]) -> None:
    """Restore, after `begin`, what `state_of` returned; tensors are written in place, as an optimiser may hold them."""
    for name, packed in state.items():
        setattr(method, name, _unpacked(packed, getattr(method, name, None)))


def save(path: Path, state: dict[str, Any]) -> None:
    """Replace the file atomically. Raises OSError when it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def load(path: Path, identity: dict[str, Any]) -> dict[str, Any] | None:
    """What `save` wrote, or None if there is no file yet.

    identity    describes the training; must equal the file's entry "identity"

    Raises ValueError when the file is damaged or belongs to another training; the message names the differences.
    """
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        stored = state["identity"]
    except (pickle.UnpicklingError, RuntimeError, EOFError, KeyError, TypeError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise ValueError(
            f"{path} is not a checkpoint of ours, or it is damaged ({reason}). Delete it to begin anew."
        ) from error
    differ = [
        f"{name} was {stored.get(name)!r} and is {identity.get(name)!r}"
        for name in sorted({*stored, *identity})
        if stored.get(name) != identity.get(name)
    ]
    if differ:
        raise ValueError(
            f"{path} is of another training: {'; '.join(differ)}. Delete it to begin anew, or name another file."
        )
    return state


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, nn.Module)


def _packed(value: Any, where: str) -> Any:
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, np.ndarray | np.generic):
        return {"array": torch.from_numpy(np.array(value))}
    if isinstance(value, torch.Generator):
        return {"generator": value.get_state()}
    if isinstance(value, Loss):
        return {
            "attributes": state_of(value),
            "tensors": {name: tensor.cpu() for name, tensor in value.state_dict().items()},
        }
    if isinstance(value, nn.Module):
        return {"module": {name: tensor.detach().cpu() for name, tensor in value.state_dict().items()}}
    if isinstance(value, list | tuple):
        return {"list": [_packed(item, where) for item in value], "tuple": isinstance(value, tuple)}
    if isinstance(value, dict):
        return {"dict": [(key, _packed(item, where)) for key, item in value.items()]}
    raise TypeError(
        f"{where} is a {type(value).__name__}, which a checkpoint cannot keep. Keep tensors, numbers, words, or lists "
        "and dictionaries of them."
    )


def _unpacked(packed: Any, current: Any) -> Any:
    """Restore a value; a tensor, generator or module in `current` is overwritten in place: an optimiser may hold it."""
    if isinstance(packed, Tensor):
        if isinstance(current, Tensor) and current.shape == packed.shape:
            with torch.no_grad():
                return current.copy_(packed)
        return packed.to(current.device) if isinstance(current, Tensor) else packed
    if not isinstance(packed, dict):
        return packed
    [kind, *_] = packed
    held = packed[kind]
    if kind == "array":
        return held.numpy()
    if kind == "generator":
        current.set_state(held)
        return current
    if kind == "attributes":
        give_back(current, held)
        current.load_state_dict(packed["tensors"])
        return current
    if kind == "module":
        current.load_state_dict(held)
        return current
    if kind == "list":
        before = current if isinstance(current, list | tuple) and len(current) == len(held) else [None] * len(held)
        values = [_unpacked(item, old) for item, old in zip(held, before, strict=True)]
        return tuple(values) if packed["tuple"] else values
    return {key: _unpacked(item, current.get(key) if isinstance(current, dict) else None) for key, item in held}
