"""Which method trains a project, and with which parameters."""

import pytest

from annotator.errors import AnnotatorError
from annotator.store.networks import configuration
from annotator.worker import train_now


def test_changed_method_parameters_are_kept_until_a_method_is_set_again(db):
    train_now.configure_method(db, "em_apl", ["alpha=0.1", "warm_up = .4", "beta=0.02"])
    assert configuration.get_method(db) == "em_apl" and configuration.get_parameters(db) == {
        "alpha": 0.1,
        "warm_up": 0.4,
    }
    train_now.configure_method(db, None, ["alpha=0.3"])
    assert configuration.get_parameters(db) == {"alpha": 0.3, "warm_up": 0.4}
    train_now.configure_method(db, "em_apl", [])
    assert configuration.get_parameters(db) == {}
    train_now.configure_method(db, "gr", ["schedule=paper"])
    train_now.configure_method(db, "an", [])
    assert configuration.get_method(db) == "an" and configuration.get_parameters(db) == {}


def test_configure_method_lists_all_errors_together_and_changes_nothing(db):
    train_now.configure_method(db, "em_apl", ["alpha=0.1"])
    with pytest.raises(AnnotatorError) as caught:
        train_now.configure_method(db, "gr", ["q2=high", "sigm=1", "q3", "w=nan"])
    told = str(caught.value)
    assert "q2 = 'high' must be a number" in told and "Did you mean 'sigma'" in told
    assert "'q3' is not of the form key=value" in told and "w = 'nan'" in told
    assert "q2=0.01" in told and "schedule=code" in told
    assert (configuration.get_method(db), configuration.get_parameters(db)) == ("em_apl", {"alpha": 0.1})


def test_configure_method_refuses_an_invalid_parameter_value_with_the_reason(db):
    with pytest.raises(AnnotatorError, match=r"(?s)negatives = 2.*negatives=0.9"):
        train_now.configure_method(db, "em_apl", ["negatives=2"])
    assert configuration.get_method(db) == "auto"


def test_unknown_method_is_refused_with_the_list_of_methods(db):
    with pytest.raises(AnnotatorError, match=r"Did you mean 'em_apl'\? There is: an, .*gr, .*auto"):
        configuration.set_method(db, "em_appl")


@pytest.mark.parametrize(
    ("text", "kinds", "value"),
    [
        ("3", ("int",), 3),
        ("3", ("float",), 3.0),
        ("none", ("float", "None"), None),
        ("0.5", ("float", "None"), 0.5),
        ("Yes", ("bool",), True),
        ("off", ("bool",), False),
        ("1", ("bool",), True),
        ("paper", ("str",), "paper"),
        ("auto", ("float", "str"), "auto"),
    ],
)
def test_parameter_value_is_parsed_by_its_declared_type(text, kinds, value):
    read = configuration._parse_value(text, kinds)
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(("text", "kinds"), [("0.5", ("int",)), ("maybe", ("bool",)), ("", ("str",)), ("x", ("None",))])
def test_parameter_value_of_another_type_is_refused(text, kinds):
    with pytest.raises(ValueError):
        configuration._parse_value(text, kinds)
