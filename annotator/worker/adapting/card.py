"""The model card of an adapted network: what it is, what it was fitted to, how it was judged, how to load it."""

from datetime import UTC, datetime

from annotator.shares import counted
from annotator.store.networks.adapted import Adapted
from models.backbones.pretrained import Pretrained

UNKNOWN = "not stated by timm: that of the parent"


def card(facts: Adapted, source: Pretrained, class_names: list[str]) -> str:
    """Return the model card as Markdown."""
    made = datetime.fromtimestamp(facts.created_at, UTC)
    verdict = "better than its parent" if facts.is_better else "not better than its parent beyond chance"
    lines = [
        f"# {_plain(facts.name)}",
        "",
        f"`{_plain(facts.parent)}`, adapted with multilabel-annotator on {made:%Y-%m-%d}: {facts.what} trained for "
        f"{counted(facts.epochs, 'epoch')} on {counted(facts.answers, 'answer')} of people about "
        f"{counted(facts.images, 'image')}.",
        "",
        f"* Licence of the parent's weights, which binds these too: {_plain(facts.licence or UNKNOWN)}",
        f"* Judged on {counted(facts.held_out_answers, 'unbiased answer')} about "
        f"{counted(facts.held_out_images, 'image')} that were held out, {facts.judged_classes} of {facts.classes} "
        f"classes: {verdict}.",
        "* Mean average precision of a linear head on its features: "
        f"{facts.ap_after:.3f}, of the parent's {facts.ap_before:.3f}; 95 % interval of the difference "
        f"{facts.ap_low:+.3f} to {facts.ap_high:+.3f}. Log loss {facts.log_loss_after:.3f}, of the parent's "
        f"{facts.log_loss_before:.3f}.",
        f"* Answers up to decision {facts.newest_decision}. On the images that it was fitted to it looks better than "
        "it is.",
        f"* Images are squashed to {source.input_size} x {source.input_size} pixels ({source.interpolation}), "
        f"mean {_numbers(source.mean)}, standard deviation {_numbers(source.std)}.",
        "",
        "    import timm",
        '    network = timm.create_model("local-dir:FOLDER", pretrained=True)      # sigmoid(network(images)): classes',
        '    network = timm.create_model("local-dir:FOLDER", pretrained=True, num_classes=0)      # features',
        "",
        "Classes, in the order of its outputs:",
        "",
        *(f"{number}. {_plain(name)}" for number, name in enumerate(class_names)),
        "",
    ]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """Return a name with the characters escaped that Markdown or HTML would interpret."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|" else letter for letter in text.replace("\n", " "))


def _numbers(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
