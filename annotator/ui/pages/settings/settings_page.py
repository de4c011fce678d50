"""The Settings page: query order, training, backbone and class names."""

import streamlit as st

from annotator.errors import AnnotatorError
from annotator.queues import query_order
from annotator.settings import DEFAULT_ORDER
from annotator.store.database import jobs
from annotator.store.database.database import Database
from annotator.store.networks import configuration
from annotator.ui.access import served_project
from annotator.ui.pages.settings import adaptation_section, class_names_section, networks_section, tagger_section
from annotator.ui.shared import widget_values
from annotator.ui.shared.annotator_name import require_annotator_name
from annotator.ui.shared.markdown_text import escape_markdown
from annotator.ui.shared.message_boxes import show_errors
from annotator.ui.shared.page_access import draw_page_link
from spmll import catalog

PROVIDER_EXAMPLE = {  # serving_modes.NEEDED, with what a provider gives for each
    "client_id": "annotator",
    "client_secret": "...",
    "server_metadata_url": "https://login.example.org/.well-known/openid-configuration",
}


def page() -> None:
    with show_errors():
        by = require_annotator_name()
        _draw_settings(by)


def _draw_settings(by: str) -> None:
    db = served_project.db()
    st.subheader("Annotate")
    _draw_order(db)

    st.subheader("Autopilot")
    draw_page_link("speed_test", "How fast are you? A two-minute test", ":material/timer:")
    st.caption("Optional. Autopilot plans with your times. The test stores no label.")

    st.subheader("Model")
    _draw_method(db)
    if st.button("Train now"):
        jobs.request_training(db)
        st.toast("Training requested.")

    networks_section.draw(db)
    adaptation_section.draw(db)
    class_names_section.draw(db)
    tagger_section.draw(db, by)

    st.subheader("People")
    draw_page_link("members", "Members: who may do what", ":material/group:")
    draw_page_link("people", "People: how each answers", ":material/badge:")
    draw_page_link("assignment", "Assignment: who is asked what", ":material/assignment_ind:")
    _draw_login_help(served_project.public_url() or "https://labels.example.org")

    st.caption("Auto-accept is on the Certificate page.")


def _draw_login_help(address: str) -> None:
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
        lines = [f'{name} = "{value}"' for name, value in PROVIDER_EXAMPLE.items()]
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


def _draw_order(db: Database) -> None:
    current = query_order.get_default_name(db)

    def choose(name: str) -> None:
        query_order.set_default(db, name)
        st.toast(escape_markdown(f"Default order: {query_order.QUERY_ORDERS[name].title}."))

    chosen = st.selectbox(
        "Default order of images on the Annotate page",
        list(query_order.QUERY_ORDERS),
        format_func=lambda name: query_order.QUERY_ORDERS[name].title,
        **widget_values.bind_setting(
            "order", current if current in query_order.QUERY_ORDERS else DEFAULT_ORDER, choose
        ),
    )
    order = query_order.QUERY_ORDERS[chosen]
    st.caption(f"{order.about} [{order.paper}]({order.url})" if order.url else order.about)


def _draw_method(db: Database) -> None:
    current = configuration.get_method(db)
    # A method that needs all labels of all images is for comparisons, as are rows of papers nobody would choose.
    known = {
        name: method for name, method in catalog.load_methods().items() if name == current or method.is_for_projects
    }
    names = list(known)
    chosen = st.selectbox(
        "Training method",
        names,
        format_func=lambda name: f"{name} - {known[name].title} ({known[name].year})",
        **widget_values.bind_setting(
            "method", current if current in known else names[0], lambda name: _choose_method(db, name)
        ),
    )
    method, changed = known[chosen], configuration.get_parameters(db) if chosen == configuration.get_method(db) else {}
    values = ", ".join(
        f"**{escape_markdown(f'{name} = {configuration.format_value(changed[name])}')}**"
        if name in changed
        else escape_markdown(f"{name} = {configuration.format_value(default)}")
        for name, default in method.defaults.items()
    )
    st.markdown(f"{method.assumes} [{configuration.describe_method_source(chosen)}]({method.url})")
    if method.needs_description:
        st.caption(escape_markdown(f"Needs {method.needs_description}."))
    with st.expander("For experts"):
        st.markdown(f"Parameters: {values or 'none'}.")
        if method.defaults:
            st.caption("To change one:")
            command = f"annotator train {db.paths.project} --set {next(iter(method.defaults))}=VALUE"
            st.code(command, language=None, wrap_lines=True)


def _choose_method(db: Database, name: str) -> None:
    try:
        configuration.set_method(db, name)
    except AnnotatorError as error:
        raise AnnotatorError(f"{error} Until then trainings use {configuration.get_method(db)}.") from error
    jobs.request_training(db)
    st.toast(escape_markdown(f"The next training uses {name}."))
