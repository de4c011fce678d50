"""Networks added by plug-ins."""

from dataclasses import replace

from spmll.backbones.packaged import find_plugin_backbones
from spmll.backbones.sources.network_source import Pretrained, Source
from spmll.plugins import describe_package


def load(name: str) -> Pretrained:
    """Return a network from a plug-in, or raise ValueError for any failure."""
    entry = find_plugin_backbones()[name]
    try:
        source = entry.load()()
    except Exception as error:  # whatever the plug-in's own code raises
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"The backbone {name!r} of {describe_package(entry)} cannot be loaded: {reason}") from error
    if not isinstance(source, Pretrained):
        raise ValueError(
            f"The backbone {name!r} of {describe_package(entry)} gives a {type(source).__name__}, no Pretrained."
        )
    return replace(source, network=source.network.eval())


SOURCE = Source(lambda name: name in find_plugin_backbones(), load, lambda: find_plugin_backbones().keys())
