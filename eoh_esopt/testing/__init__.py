"""Hostile programs to try on a problem, the project's own or yours: `for finding in attack(spec): ...`."""

from eoh_esopt.testing.attacks import Finding, attack
from eoh_esopt.testing.corpus import HostileProgram, programs

__all__ = ["Finding", "HostileProgram", "attack", "programs"]
