"""The Markdown model card of an adapted backbone."""

from datetime import UTC, datetime

from annotator.humanize import format_count
from annotator.store.networks.adapted_networks import AdaptedNetwork
from spmll.backbones.pretrained import Pretrained

UNKNOWN_LICENSE = "not stated by timm: that of the parent"


def format_network_card(network: AdaptedNetwork, source: Pretrained, class_names: list[str]) -> str:
    """Return the Markdown model card of an adapted backbone."""
    made = datetime.fromtimestamp(network.created_at, UTC)
    verdict = "better than its parent" if network.is_better else "not better than its parent beyond chance"
    lines = [
        f"# {_escape_text(network.name)}",
        "",
        f"`{_escape_text(network.parent)}`, adapted with multilabel-annotator on {made:%Y-%m-%d}: {network.what} "
        f"trained for {format_count(network.epochs, 'epoch')} on {format_count(network.answers, 'answer')} of people "
        f"about {format_count(network.images, 'image')}.",
        "",
        f"* Licence of the parent's weights, which binds these too: {_escape_text(network.licence or UNKNOWN_LICENSE)}",
        f"* Judged on {format_count(network.held_out_answers, 'unbiased answer')} about "
        f"{format_count(network.held_out_images, 'image')} that were held out, {network.judged_classes} of "
        f"{network.classes} classes: {verdict}.",
        f"* Mean average precision of a linear head on its features: {network.ap_after:.3f}, of the parent's "
        f"{network.ap_before:.3f}; 95 % interval of the difference {network.ap_low:+.3f} to {network.ap_high:+.3f}. "
        f"Log loss {network.log_loss_after:.3f}, of the parent's {network.log_loss_before:.3f}.",
        f"* Answers up to decision {network.newest_decision}. On the images that it was fitted to it looks better than "
        "it is.",
        f"* Images are squashed to {source.input_size} x {source.input_size} pixels ({source.interpolation}), mean "
        f"{_format_numbers(source.mean)}, standard deviation {_format_numbers(source.std)}.",
        "",
        "    import timm",
        '    network = timm.create_model("local-dir:FOLDER", pretrained=True)      # sigmoid(network(images)): classes',
        '    network = timm.create_model("local-dir:FOLDER", pretrained=True, num_classes=0)      # features',
        "",
        "Classes, in the order of its outputs:",
        "",
        *(f"{number}. {_escape_text(name)}" for number, name in enumerate(class_names)),
        "",
    ]
    return "\n".join(lines)


def _escape_text(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|" else letter for letter in text.replace("\n", " "))


def _format_numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
