"""The tools that come with `bench finish`: ours and four baselines. The table is the registry.

engine.py is the project, model and memory that all but the form work on. Begin with autopilot_tool.py.
"""

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
