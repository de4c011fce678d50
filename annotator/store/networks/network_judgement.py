"""The record of a network judged against another on answers of this project: one for all that keep it."""

from dataclasses import dataclass
from typing import Any

from spmll.statistics.paired_bootstrap import Comparison


@dataclass(frozen=True, kw_only=True)
class NetworkJudgement:
    """A network compared with the one before it, by linear heads on the features of either.

    Attributes:
        ap_before, ap_after: Mean average precision with the network before, and with this one.
        ap_low, ap_high: The 95 % interval of their difference.
        log_loss_before, log_loss_after: The log loss of the same heads.
        is_better: Whether it ranks better by more than its interval, and its log loss is not surely worse.
    """

    ap_before: float = 0.0
    ap_after: float = 0.0
    ap_low: float = 0.0
    ap_high: float = 0.0
    log_loss_before: float = 0.0
    log_loss_after: float = 0.0
    is_better: bool = False


def to_judgement_fields(result: Comparison) -> dict[str, Any]:
    """Return the figures of a comparison by the names of the fields of Judged."""
    return {
        "ap_before": result.ap.first,
        "ap_after": result.ap.second,
        "ap_low": result.ap.low,
        "ap_high": result.ap.high,
        "log_loss_before": result.log_loss.first,
        "log_loss_after": result.log_loss.second,
        "is_better": result.is_better,
    }
