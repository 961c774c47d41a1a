"""Tools that agents call: commands in a sandbox, with limits."""

from train_adapters.tools.box import Box, ToolFailed
from train_adapters.tools.limits import Mount, ToolLimits
from train_adapters.tools.report import ToolEnd, ToolResult
from train_adapters.tools.sandbox import Sandbox, make_sandbox

__all__ = ["Box", "Mount", "Sandbox", "ToolEnd", "ToolFailed", "ToolLimits", "ToolResult", "make_sandbox"]
