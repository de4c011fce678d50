"""Settings: the order of images, the training method, the network, adapting it, guesses from the names of classes."""

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.queues import query_order
from annotator.settings import DEFAULT_ORDER
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.networks import configuration
from annotator.ui.access import context
from annotator.ui.parts import adapting, class_names, frame, networks, tagger
from models import catalogue

PROVIDER = {  # serving_modes.NEEDED, with what a provider gives for each
    "client_id": "annotator",
    "client_secret": "...",
    "server_metadata_url": "https://login.example.org/.well-known/openid-configuration",
}


def page() -> None:
    """Draw the Settings page."""
    with frame.errors_shown():
        by = frame.annotator_name()
        _settings(by)


def _settings(by: str) -> None:
    db = context.db()
    st.subheader("Annotate")
    _order(db)

    st.subheader("Autopilot")
    frame.link("speed_test", "How fast are you? A two-minute test", ":material/timer:")
    st.caption("Optional. Autopilot plans with your times. The test stores no label.")

    st.subheader("Model")
    _method(db)
    if st.button("Train now"):
        jobs.ask_training(db)
        st.toast("Training requested.")

    networks.section(db)
    adapting.section(db)
    class_names.section(db)
    tagger.section(db, by)

    st.subheader("People")
    frame.link("members", "Members: who may do what", ":material/group:")
    frame.link("people", "People: how each answers", ":material/badge:")
    frame.link("assignment", "Assignment: who is asked what", ":material/assignment_ind:")
    _login_provider(context.address() or "https://labels.example.org")

    st.caption("Auto-accept is on the Certificate page.")


def _login_provider(address: str) -> None:
    """Draw the instructions for signing in at a login provider.

    Args:
        address: The address that people open.
    """
    address = address.replace("http://", "https://", 1)  # providers send people back to such addresses only
    with st.expander("Login provider (OpenID Connect): how to set one up"):
        st.markdown(
            "Any provider will do: Keycloak, Entra ID, Okta, Google, a university's. Register a confidential (web) "
            "application there. Its redirect address, also after signing out:"
        )
        st.code(f"{address}/oauth2callback", language=None, wrap_lines=True)
        st.markdown(
            "Write what it gives you into a file only you can read (`provider.toml`). The last "
            "line is its issuer address, then `/.well-known/openid-configuration`:"
        )
        lines = [f'{name} = "{value}"' for name, value in PROVIDER.items()]
        st.code("\n".join(lines), language="toml", wrap_lines=True)
        st.markdown("Then install what the login needs, and start the server with it:")
        st.code(
            "pip install 'multilabel-annotator[auth]'\n"
            f"annotator serve PROJECT --auth oidc --oidc provider.toml --url {address}/",
            language=None,
            wrap_lines=True,
        )
        st.caption(
            "The address must begin with https://: a reverse proxy, such as Caddy, sees to that. Add --behind and the "
            "proxy's address. docs/team.md has more, also on what to do when signing in fails."
        )


def _order(db: Database) -> None:
    current = query_order.chosen(db)

    def choose(name: str) -> None:
        query_order.choose(db, name)
        st.toast(frame.escaped(f"Default order: {query_order.QUERY_ORDERS[name].title}."))

    chosen = st.selectbox(
        "Default order of images on the Annotate page",
        list(query_order.QUERY_ORDERS),
        format_func=lambda name: query_order.QUERY_ORDERS[name].title,
        **frame.follows("order", current if current in query_order.QUERY_ORDERS else DEFAULT_ORDER, choose),
    )
    order = query_order.QUERY_ORDERS[chosen]
    st.caption(f"{order.about} [{order.paper}]({order.url})" if order.url else order.about)


def _method(db: Database) -> None:
    current = configuration.method(db)
    # A method that needs all labels of all images is for comparisons, as are rows of papers nobody would choose.
    known = {name: method for name, method in catalogue.methods().items() if name == current or method.is_for_projects}
    names = list(known)
    chosen = st.selectbox(
        "Training method",
        names,
        format_func=lambda name: f"{name} - {known[name].title} ({known[name].year})",
        **frame.follows("method", current if current in known else names[0], lambda name: _choose(db, name)),
    )
    method, changed = known[chosen], configuration.parameters(db) if chosen == configuration.method(db) else {}
    values = ", ".join(
        f"**{frame.escaped(f'{name} = {configuration.shown(changed[name])}')}**"
        if name in changed
        else frame.escaped(f"{name} = {configuration.shown(default)}")
        for name, default in method.defaults.items()
    )
    st.markdown(f"{method.assumes} [{configuration.source(chosen)}]({method.url})")
    if method.needs_in_words:
        st.caption(frame.escaped(f"Needs {method.needs_in_words}."))
    with st.expander("For experts"):
        st.markdown(f"Parameters: {values or 'none'}.")
        if method.defaults:
            st.caption("To change one:")
            command = f"annotator train {db.paths.project} --set {next(iter(method.defaults))}=VALUE"
            st.code(command, language=None, wrap_lines=True)


def _choose(db: Database, name: str) -> None:
    try:
        configuration.choose_method(db, name)
    except AnnotatorError as error:
        raise AnnotatorError(f"{error} Until then trainings use {configuration.method(db)}.") from error
    jobs.ask_training(db)
    st.toast(frame.escaped(f"The next training uses {name}."))
