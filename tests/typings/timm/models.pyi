class _Config:
    has_weights: bool

def get_pretrained_cfg(model_name: str) -> _Config | None: ...
