"""The registry of methods, METHODS. One file per paper or family, one entry per method.

Methods that are only a loss are assignments in published/loss_only.py. `python -m spmll.methods` writes
table.json.
"""

import inspect
from typing import Any

from spmll.losses.base import unknown_name_error
from spmll.methods.auto import Auto
from spmll.methods.base import Method
from spmll.methods.oracle import Oracle
from spmll.methods.published.boostlu import BoostLU
from spmll.methods.published.em_apl import EM, EMAPL
from spmll.methods.published.en import EN
from spmll.methods.published.epr import EPR
from spmll.methods.published.gr import GR, GRLearned
from spmll.methods.published.gr_guided import GRNames, GRPrototypes
from spmll.methods.published.lagc import LAGC
from spmll.methods.published.large_loss import LLR, LLCp, LLCt
from spmll.methods.published.linear_init import ANLSLinearInit, ROLELinearInit
from spmll.methods.published.loss_only import (
    AN,
    ANLS,
    ASL,
    BCELS,
    ENT_MIN,
    FOCAL,
    HILL,
    IU,
    IUN,
    OPML_METHOD,
    PR,
    WAN,
    ZLPR_METHOD,
)
from spmll.methods.published.opml_sp import OPMLSP
from spmll.methods.published.role import ROLE
from spmll.methods.published.smile import SMILE
from spmll.methods.published.splc import SPLC
from spmll.methods.published.vlpl import VLPL
from spmll.methods.published.weight_penalty import L1R, L2R

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        AN,
        ANLS,
        WAN,
        EPR,
        ROLE,
        ROLELinearInit,
        EM,
        EMAPL,
        GR,
        OPML_METHOD,
        OPMLSP,
        LAGC,
        LLR,
        LLCt,
        LLCp,
        BoostLU,
        SPLC,
        HILL,
        ASL,
        FOCAL,
        ZLPR_METHOD,
        EN,
        VLPL,
        GRNames,
        GRPrototypes,
        SMILE,
        Oracle,
        Auto,
        ANLSLinearInit,
        BCELS,
        IUN,
        IU,
        PR,
        ENT_MIN,
        L1R,
        L2R,
        GRLearned,
    )
}

DEFAULT_METHOD = "auto"


def make_method(name: str = DEFAULT_METHOD, **parameters: Any) -> Method:
    """Create a method by name.

    Args:
        name: Name in METHODS.
        **parameters: Parameters other than the defaults.

    Returns:
        The method, before its `begin`.

    Raises:
        ValueError: A name is unknown or a value invalid.
    """
    if name not in METHODS:
        raise unknown_name_error("method", name, METHODS)
    known = get_default_parameters(name)
    for parameter in parameters:
        if parameter not in known:
            raise unknown_name_error(f"parameter of method {name!r}:", parameter, known)
    return METHODS[name](**parameters)


def get_default_parameters(name: str) -> dict[str, Any]:
    """Return a method's default parameters.

    Args:
        name: Name in METHODS.

    Returns:
        Name -> default.

    Raises:
        ValueError: Unknown name.
    """
    if name not in METHODS:
        raise unknown_name_error("method", name, METHODS)
    return {argument.name: argument.default for argument in inspect.signature(METHODS[name]).parameters.values()}
