"""The state of a long training in one file, replaced atomically after every epoch.

A safetensors file with JSON metadata, which cannot run code.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from spmll.losses.base import Loss
from spmll.methods.base import Method

CHECKPOINT_FORMAT = "training, version 1"
PLAIN_TYPES = (int, float, bool, str, type(None))


def get_method_state(method: Method | Loss) -> dict[str, Any]:
    """Return a method's state since `begin`, for `restore_method_state`.

    It holds tensors, arrays, plain values and collections of these, generators and modules. A class attribute
    `inside` names wrapped methods.

    Raises:
        TypeError: An attribute has another type.
    """
    inside: tuple[str, ...] = getattr(method, "inside", ())
    return {
        name: {"inner": get_method_state(value)}
        if name in inside
        else _pack_value(value, f"{type(method).__name__}.{name}")
        for name, value in vars(method).items()
        if not (isinstance(method, nn.Module) and name in nn.Module().__dict__) and not _is_function(value)
    }


def restore_method_state(method: Method | Loss, state: Mapping[str, Any]) -> None:
    """Restore a state after `begin` in place, because optimizers may hold the tensors."""
    for name, packed in state.items():
        setattr(method, name, _unpack_value(packed, getattr(method, name, None)))


def save(path: Path, state: dict[str, Any]) -> None:
    """Replace a checkpoint file atomically. Raises OSError or TypeError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    tensors: dict[str, Tensor] = {}
    tree = json.dumps(_flatten(state, tensors))
    try:
        save_file(tensors, part, {"format": CHECKPOINT_FORMAT, "state": tree})
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def load(path: Path, identity: dict[str, Any]) -> dict[str, Any] | None:
    """Return the state in a checkpoint file, or None without a file.

    Args:
        identity: Training settings, which must equal the file's.

    Raises:
        ValueError: The file is damaged or from another training.
    """
    if not path.exists():
        return None
    try:
        state = _read(path)
        stored = state["identity"]
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
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


def _read(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
        if metadata.get("format") != CHECKPOINT_FORMAT:
            raise ValueError(f"its format is {metadata.get('format')!r}, not {CHECKPOINT_FORMAT!r}")
        return _unflatten(json.loads(metadata["state"]), file)


def _flatten(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Convert a nested value to JSON, moving its tensors to `tensors`."""
    if isinstance(value, PLAIN_TYPES):
        return value
    if isinstance(value, Tensor):
        tensors[name := str(len(tensors))] = value.detach().cpu().clone().contiguous()
        return {"tensor": name}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_flatten(item, tensors) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[_flatten(key, tensors), _flatten(item, tensors)] for key, item in value.items()]}
    raise TypeError(f"A checkpoint cannot keep a {type(value).__name__}.")


def _unflatten(flat: Any, file: Any) -> Any:
    """Convert JSON of `_flatten` back to a nested value, reading tensors from the file."""
    if not isinstance(flat, dict):
        return flat
    [(kind, held)] = flat.items()
    if kind == "tensor":
        return file.get_tensor(held)
    if kind == "dict":
        return {_unflatten(key, file): _unflatten(item, file) for key, item in held}
    items = [_unflatten(item, file) for item in held]
    return tuple(items) if kind == "tuple" else items


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, nn.Module)


def _pack_value(value: Any, where: str) -> Any:
    if isinstance(value, PLAIN_TYPES):
        return value
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, np.ndarray | np.generic):
        return {"array": torch.from_numpy(np.array(value))}
    if isinstance(value, torch.Generator):
        return {"generator": value.get_state()}
    if isinstance(value, Loss):
        return {
            "attributes": get_method_state(value),
            "tensors": {name: tensor.cpu() for name, tensor in value.state_dict().items()},
        }
    if isinstance(value, nn.Module):
        return {"module": {name: tensor.detach().cpu() for name, tensor in value.state_dict().items()}}
    if isinstance(value, list | tuple):
        return {"list": [_pack_value(item, where) for item in value], "tuple": isinstance(value, tuple)}
    if isinstance(value, dict):
        return {"dict": [(key, _pack_value(item, where)) for key, item in value.items()]}
    raise TypeError(
        f"{where} is a {type(value).__name__}, which a checkpoint cannot keep. Keep tensors, numbers, words, or lists "
        "and dictionaries of them."
    )


def _unpack_value(packed: Any, current: Any) -> Any:
    """Restore a value in place, because optimizers may hold it."""
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
        restore_method_state(current, held)
        current.load_state_dict(packed["tensors"])
        return current
    if kind == "inner":
        restore_method_state(current, held)
        return current
    if kind == "module":
        current.load_state_dict(held)
        return current
    if kind == "list":
        before = current if isinstance(current, list | tuple) and len(current) == len(held) else [None] * len(held)
        values = [_unpack_value(item, old) for item, old in zip(held, before, strict=True)]
        return tuple(values) if packed["tuple"] else values
    return {key: _unpack_value(item, current.get(key) if isinstance(current, dict) else None) for key, item in held}
