"""What a format has no room for, counted in the data set that is to be written, and said before it is."""

from annotator.exchange.exports.tallies import Tallies
from annotator.exchange.formats.format import Format
from annotator.shares import counted


def losses(format_: Format, tallies: Tallies) -> list[str]:
    """What would be lost, one sentence each with what avoids it; [] when nothing is."""
    name, lost = format_.name, format_.lost
    sentences: list[str] = []
    if lost.unknown and tallies.unknown:
        unknown = counted(tallies.unknown, "pair")
        alike = f", and look like the {tallies.absent:,} absent ones" if lost.absent and tallies.absent else ""
        sentences.append(
            f"{name} has no room for 'unknown': {unknown} would be lost{alike}. Use --unknown absent, --unknown model "
            "or --only-complete"
        )
    elif lost.absent and not lost.unknown and tallies.absent:
        sentences.append(
            f"{name} has no room for 'absent': {counted(tallies.absent, 'pair')} would be lost. Choose another format"
        )
    if lost.unsure and tallies.unsure:
        sentences.append(
            f"{name} has no room for 'unsure': {counted(tallies.unsure, 'pair')} would be lost. Use --state present "
            "--state absent, by which they count as unknown"
        )
    return sentences
