"""The shared record of a comparison of two backbones."""

from dataclasses import dataclass
from typing import Any

from spmll.statistics.paired_bootstrap import Comparison


@dataclass(frozen=True, kw_only=True)
class NetworkJudgement:
    """A comparison of a new backbone with the previous one, by linear heads on the embeddings of both."""

    # ap_before, ap_after: mean average precision with either backbone
    ap_before: float = 0.0
    ap_after: float = 0.0
    # ap_low, ap_high: 95% interval of the difference
    ap_low: float = 0.0
    ap_high: float = 0.0
    log_loss_before: float = 0.0
    log_loss_after: float = 0.0
    is_better: bool = False


def to_judgement_fields(result: Comparison) -> dict[str, Any]:
    return {
        "ap_before": result.ap.first,
        "ap_after": result.ap.second,
        "ap_low": result.ap.low,
        "ap_high": result.ap.high,
        "log_loss_before": result.log_loss.first,
        "log_loss_after": result.log_loss.second,
        "is_better": result.is_better,
    }
