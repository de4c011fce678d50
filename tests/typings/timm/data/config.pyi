from typing import Any

from torch import nn

def resolve_model_data_config(model: nn.Module) -> dict[str, Any]: ...
