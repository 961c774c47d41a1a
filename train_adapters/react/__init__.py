"""The ReAct loop: the model thinks, runs commands, sees what they show, and answers."""

from train_adapters.react.actions import Call
from train_adapters.react.adapter import Brief, ReactAdapter, ReactParts
from train_adapters.react.environment import ReactEnvironment, Transcript
from train_adapters.react.limits import ReactEnding, ReactLimits
from train_adapters.react.moves import Final, Move, parse_move
from train_adapters.react.rules import system_text

__all__ = [
    "Brief",
    "Call",
    "Final",
    "Move",
    "ReactAdapter",
    "ReactEnding",
    "ReactEnvironment",
    "ReactLimits",
    "ReactParts",
    "Transcript",
    "parse_move",
    "system_text",
]
