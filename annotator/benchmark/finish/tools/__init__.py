"""The labeling tools of `annotator bench finish`: ours and four baselines, in one table."""

from collections.abc import Callable

from annotator.benchmark.finish.protocol import Tool
from annotator.benchmark.finish.tools.autopilot_tool import AutopilotTool
from annotator.benchmark.finish.tools.baselines import FormTool, GridsTool, RandomTool, UncertaintyTool

OUR_TOOL, RIVAL_TOOL = "autopilot", "form"
TOOLS: dict[str, Callable[[], Tool]] = {
    OUR_TOOL: AutopilotTool,
    RIVAL_TOOL: FormTool,
    "random": RandomTool,
    "grids": GridsTool,
    "uncertainty": UncertaintyTool,
}
