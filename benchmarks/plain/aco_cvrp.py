"""Ants for vehicle routing the plain way: torch, one call for each step of an iteration's ants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from problems.aco_cvrp import CAPACITY, DECAY, N_ANTS, N_ITERATIONS, AcoCvrp


def walk(weights: Tensor, demands: Tensor, capacity: float, n_ants: int, generator: torch.Generator) -> Tensor:
    """Paths from depot to depot, int64 of shape (n_ants, steps + 1); ants that are done stay at the depot."""
    unvisited = torch.ones(n_ants, len(demands), dtype=torch.bool)
    unvisited[:, 0] = False
    nodes = torch.zeros(n_ants, dtype=torch.int64)
    room = torch.full((n_ants,), float(capacity), dtype=demands.dtype)
    paths = [nodes]
    while unvisited.any() or nodes.any():
        allowed = unvisited & (demands <= room[:, None])
        allowed[:, 0] = (nodes != 0) | ~unvisited.any(dim=1)
        nodes = torch.multinomial(weights[nodes] * allowed, 1, generator=generator)[:, 0]
        unvisited[torch.arange(n_ants), nodes] = False
        room = torch.where(nodes == 0, float(capacity), room - demands[nodes])
        paths.append(nodes)
    return torch.stack(paths, dim=1)


def costs_of(distances: Tensor, paths: Tensor) -> Tensor:
    """Cost of each path; a step from the depot to the depot counts distances[0, 0]."""
    return distances[paths[:, :-1], paths[:, 1:]].sum(dim=1)


def mark(pheromone: Tensor, paths: Tensor, costs: Tensor, decay: float) -> None:
    """Fade the pheromone in place, add 1 / cost to every step, and lift it to 1e-10."""
    pheromone *= decay
    for path, cost in zip(paths, costs, strict=True):
        pheromone[path[:-1], path[1:]] += 1 / cost
    pheromone.clamp_(min=1e-10)


def cheapest(
    distances: Tensor,
    heuristic: Tensor,
    demands: Tensor,
    capacity: float,
    seed: int,
    n_ants: int = N_ANTS,
    n_iterations: int = N_ITERATIONS,
    decay: float = DECAY,
) -> float:
    """Least cost found; all tensors are float64, the matrices of shape (n, n) with the depot first."""
    generator = torch.Generator().manual_seed(seed)
    pheromone, best = torch.ones_like(distances), float("inf")
    for _ in range(n_iterations):
        paths = walk(pheromone * heuristic, demands, capacity, n_ants, generator)
        costs = costs_of(distances, paths)
        best = min(best, float(costs.min()))
        mark(pheromone, paths, costs, decay)
    return best


def evaluate(problem: AcoCvrp, function: Callable[..., object]) -> float:
    """Mean cost over the instances."""
    values = []
    for one in problem.instances:
        matrix = function(one.distances.copy(), one.points.copy(), one.demands.copy(), CAPACITY)
        heuristic = torch.from_numpy(np.maximum(np.asarray(matrix, dtype=np.float64) + 1e-9, 1e-9))
        distances, demands = torch.tensor(one.distances), torch.tensor(one.demands)
        values.append(cheapest(distances, heuristic, demands, CAPACITY, one.seed))
    return float(np.mean(values))
