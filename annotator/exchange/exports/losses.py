"""Labels that an export's format cannot hold, counted before writing."""

from collections.abc import Sequence
from dataclasses import dataclass

from annotator.errors import AnnotatorError
from annotator.exchange.exports.tallies import Tallies
from annotator.exchange.formats.format import Format
from annotator.humanize import format_count


@dataclass(frozen=True)
class Loss:
    """A kind of labels that a format cannot hold, with advice for command line and page."""

    # without a period
    text: str
    options: str
    on_page: str

    @property
    def past_tense(self) -> str:
        """Return the text as a sentence in the past tense, for a loss that was accepted."""
        return f"{self.text.replace(': 1 pair would be', ': 1 pair is').replace('would be lost', 'are lost')}."


class LossyExportError(AnnotatorError):
    """The error of an export that would lose labels without `lossy`."""

    def __init__(self, lost: Sequence[Loss]):
        rows = [f"  - {loss.text}. {loss.options}, or go on with --lossy." for loss in lost]
        super().__init__("\n".join(["Nothing was exported:", *rows]))
        self.lost = lost


def can_lose_labels(format_: Format) -> bool:
    """Return whether the format cannot hold unanswered, unsure or absent cells."""
    return format_.lost.unknown or format_.lost.unsure or format_.lost.absent


def find_losses(format_: Format, tallies: Tallies) -> list[Loss]:
    name, lost = format_.name, format_.lost
    found: list[Loss] = []
    if lost.unknown and tallies.unknown:
        unknown = format_count(tallies.unknown, "pair")
        alike = f", and look like the {tallies.absent:,} absent ones" if lost.absent and tallies.absent else ""
        found.append(
            Loss(
                f"{name} has no room for 'unknown': {unknown} would be lost{alike}",
                "Use --unknown absent, --unknown model or --only-complete",
                "To keep the difference, fill unanswered pairs in, export complete images only, or choose another "
                "format.",
            )
        )
    elif lost.absent and not lost.unknown and tallies.absent:
        found.append(
            Loss(
                f"{name} has no room for 'absent': {format_count(tallies.absent, 'pair')} would be lost",
                "Choose another format",
                "To keep them, choose another format.",
            )
        )
    if lost.unsure and tallies.unsure:
        found.append(
            Loss(
                f"{name} has no room for 'unsure': {format_count(tallies.unsure, 'pair')} would be lost",
                "Use --state present --state absent, by which they count as unknown",
                "To have them count as unanswered, choose the answers present and absent only; to keep them, choose "
                "another format.",
            )
        )
    return found
