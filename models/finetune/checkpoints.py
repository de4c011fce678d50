"""Where a long training stands, in one file: written after every epoch, read again by whoever goes on.

The file is torch's own format, read with weights_only: tensors, numbers, words, lists and dictionaries, and never an
object that could run code. It is written under another name and renamed, so a kill leaves the old one or the new one.
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
    """Everything a method has come to know since `begin`, so that `give_back` can continue its training.

    That is every attribute that is a tensor, an array, a number, a word, or a list or dictionary of these; a random
    generator's state; of a loss, its attributes; of another torch module, its state_dict. A method needs no code of its
    own for this, as long as it keeps what it knows in such attributes.

    Raises TypeError naming an attribute of another kind.
    """
    return {
        name: _packed(value, f"{type(method).__name__}.{name}")
        for name, value in vars(method).items()
        if not (isinstance(method, nn.Module) and name in nn.Module().__dict__) and not _is_function(value)
    }


def give_back(method: Method | Loss, state: Mapping[str, Any]) -> None:
    """Puts back what `state_of` took, after `begin`. Learned tensors keep their identity: an optimiser holds them."""
    for name, packed in state.items():
        setattr(method, name, _unpacked(packed, getattr(method, name, None)))


def save(path: Path, state: dict[str, Any]) -> None:
    """Replaces the file at once or not at all. Raises OSError when it cannot be written."""
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
    """What `save` wrote, or None when there is nothing yet.

    identity    what the file must say of the training it belongs to, under "identity"

    Raises ValueError when the file is damaged or belongs to another training, saying in what that differs.
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
