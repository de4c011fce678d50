"""The table of methods, METHODS. It is the registry: a new method is one file and one entry here.

A method that is a loss and nothing else is an assignment in published/loss_only.py instead of a file.

`python -m spmll.methods` then writes what the classes say of themselves into table.json, for pages and commands that
do not load torch (spmll/catalog.py).
"""

import inspect
from typing import Any

from spmll.losses.base import unknown_name_error
from spmll.methods.auto import Auto
from spmll.methods.base import Method
from spmll.methods.oracle import Oracle
from spmll.methods.published.an_ls_linear_init import ANLSLinearInit
from spmll.methods.published.boostlu import BoostLU
from spmll.methods.published.em import EM
from spmll.methods.published.em_apl import EMAPL
from spmll.methods.published.en import EN
from spmll.methods.published.epr import EPR
from spmll.methods.published.gr import GR
from spmll.methods.published.gr_learned import GRLearned
from spmll.methods.published.gr_names import GRNames
from spmll.methods.published.gr_prototypes import GRPrototypes
from spmll.methods.published.lagc import LAGC
from spmll.methods.published.ll_cp import LLCp
from spmll.methods.published.ll_ct import LLCt
from spmll.methods.published.ll_r import LLR
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
from spmll.methods.published.role_linear_init import ROLELinearInit
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
    """Return a method by its name, with some of its parameters changed.

    Args:
        name: A name of METHODS.
        **parameters: The parameters that differ from the defaults, by name.

    Returns:
        The method, not begun.

    Raises:
        ValueError: No method or parameter has this name; the message lists them. Or a value is not possible.
    """
    if name not in METHODS:
        raise unknown_name_error("method", name, METHODS)
    known = get_default_parameters(name)
    for parameter in parameters:
        if parameter not in known:
            raise unknown_name_error(f"parameter of method {name!r}:", parameter, known)
    return METHODS[name](**parameters)


def get_default_parameters(name: str) -> dict[str, Any]:
    """Return the parameters of a method and their defaults.

    Args:
        name: A name of METHODS.

    Returns:
        Name -> default.

    Raises:
        ValueError: No method has this name; the message lists them.
    """
    if name not in METHODS:
        raise unknown_name_error("method", name, METHODS)
    return {argument.name: argument.default for argument in inspect.signature(METHODS[name]).parameters.values()}
