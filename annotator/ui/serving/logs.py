"""The server's log as JSON lines on standard error."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

from streamlit import logger as streamlit_logger
from typing_extensions import override


class JsonFormatter(logging.Formatter):
    """A formatter of JSON records: time (ISO 8601, UTC), level, logger, message, error."""

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
    """Make all loggers write JSON, provided that uvicorn keeps its loggers."""
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
