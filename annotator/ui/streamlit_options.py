"""Streamlit's options. None of them is read from a file or the environment.

Streamlit obeys `.streamlit/config.toml` and `secrets.toml` of the working folder (a downloaded data set, say) and of
the home, also when they change while it runs. One line of such a file lets pages of other origins in, drives the app
without a pass, or fetches fonts from the net. So no file is read at all, and every option that touches security or the
network is pinned besides. tests/test_streamlit_options.py fails when Streamlit adds an option that nobody has judged.
"""

import os
from collections.abc import Callable

from streamlit import config, net_util
from streamlit.web import bootstrap

from annotator.ui.door import HOSTS

ADDRESS = "127.0.0.1"

PINNED = {
    "server.address": ADDRESS,  # unset would mean every network this machine is in
    "server.allowedHosts": list(HOSTS),
    "server.enableCORS": True,
    "server.corsAllowedOrigins": [],
    "server.enableXsrfProtection": True,
    "server.xsrfCookieSameSite": "strict",
    "server.enableAgentApi": False,
    "server.agentMaxSessions": 1,
    "server.trustedUserHeaders": {},
    "server.unsafeMetricsUserAttributes": [],
    "server.enableStaticServing": False,
    "server.scriptHealthCheckEnabled": False,
    "server.baseUrlPath": "",
    "server.customComponentBaseUrlPath": "",
    "server.sslCertFile": "",
    "server.sslKeyFile": "",
    "server.headless": True,  # the browser is opened here, when the port answers
    "server.showEmailPrompt": False,
    "server.maxUploadSize": 200,
    "server.maxMessageSize": 200,
    "server.maxWidgetStateSize": 25,
    "server.fileWatcherType": "none",
    "server.folderWatchList": [],
    "server.runOnSave": False,
    "server.allowRunOnSave": False,
    "browser.serverAddress": ADDRESS,
    "browser.gatherUsageStats": False,
    "client.allowedOrigins": [],  # whose frames may send messages to the page: nobody's
    "client.showErrorLinks": False,
    "client.toolbarMode": "minimal",
    "global.developmentMode": False,
    "global.e2eTest": False,
    "global.unitTest": False,
    "global.appTest": False,
    "secrets.files": [],
    "theme.fontFaces": [],
}

LOOK = {
    "client.showSidebarNavigation": False,
    "logger.hideWelcomeMessage": True,
    # Grounds without a tint of their own, since colours of photos are judged on them.
    "theme.baseRadius": "9px",
    "theme.light.primaryColor": "#0b7265",
    "theme.light.backgroundColor": "#fcfcfb",
    "theme.light.secondaryBackgroundColor": "#efefed",
    "theme.light.textColor": "#1c2221",
    "theme.dark.primaryColor": "#4cc2ae",
    "theme.dark.backgroundColor": "#161817",
    "theme.dark.secondaryBackgroundColor": "#232625",
    "theme.dark.textColor": "#e9ecea",
}


def options(port: int) -> dict[str, object]:
    """What st.App.run is given; from now on Streamlit reads no file and no variable for anything else."""
    _replace(config, "get_config_files", lambda name: [])
    # Asked on a foreign origin; the first asks a server on the net. Ours is known: there is nothing to look up.
    _replace(net_util, "get_external_ip", lambda: None)
    _replace(net_util, "get_internal_ip", lambda: None)
    _replace(bootstrap, "_fix_sys_path", lambda path: None)  # ours imports nothing from beside what was started
    for name in [name for name in os.environ if name.startswith("STREAMLIT_")]:
        del os.environ[name]
    return PINNED | LOOK | {"server.port": port, "browser.serverPort": port}


def _replace(module: object, name: str, function: Callable) -> None:
    # Not Streamlit's public interface. One that has it no more must not be served half open.
    if not hasattr(module, name):
        raise RuntimeError(f"This version of Streamlit has no {name}. Install the one that pyproject.toml names.")
    setattr(module, name, function)
