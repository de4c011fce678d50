"""The log of the server as JSON, one object a line on standard error, for whatever collects logs."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

from streamlit import logger as streamlit_logger
from typing_extensions import override


class JsonFormatter(logging.Formatter):
    """A formatter that writes a record as an object.

    Its fields are time (ISO 8601, UTC), level, logger, message, and error where there is a traceback.
    """

    @override
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            entry["error"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


def log_as_json() -> None:
    """Have all loggers of this process write JSON: our own, Streamlit's, and uvicorn's, set up by Streamlit.

    uvicorn must be told to leave its loggers as they are (sockets.py).
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.getLogger().handlers[:] = [handler]

    def write_json(logger: logging.Logger) -> None:
        logger.handlers[:] = [handler]

    # Not Streamlit's public interface: it gives each of its loggers a handler by this function, and all of them new
    # ones whenever its options are set.
    if not hasattr(streamlit_logger, "setup_formatter"):
        raise RuntimeError(
            "This version of Streamlit has no setup_formatter. Install the one that pyproject.toml names."
        )
    streamlit_logger.setup_formatter = write_json
    streamlit_logger.update_formatter()
