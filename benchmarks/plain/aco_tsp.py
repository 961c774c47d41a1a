"""Ants for the travelling salesman the plain way: torch, one call for each step of an iteration's ants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from problems.aco_tsp import DECAY, N_ANTS, N_ITERATIONS, AcoTsp


def walk(weights: Tensor, n_ants: int, generator: torch.Generator) -> Tensor:
    """Tours from uniformly random nodes, int64 of shape (n_ants, n), drawn in proportion to weights of shape (n, n)."""
    n = len(weights)
    nodes = torch.randint(n, (n_ants,), generator=generator)
    unvisited = torch.ones(n_ants, n)
    tours = [nodes]
    for _ in range(n - 1):
        unvisited[torch.arange(n_ants), nodes] = 0
        nodes = torch.multinomial(weights[nodes] * unvisited, 1, generator=generator)[:, 0]
        tours.append(nodes)
    return torch.stack(tours, dim=1)


def mark(pheromone: Tensor, tours: Tensor, lengths: Tensor, decay: float) -> None:
    """Fade the pheromone in place, and add 1 / length to both directions of every edge."""
    pheromone *= decay
    for tour, length in zip(tours, lengths, strict=True):
        following = torch.roll(tour, -1)
        pheromone[tour, following] += 1 / length
        pheromone[following, tour] += 1 / length


def shortest(
    distances: Tensor,
    heuristic: Tensor,
    seed: int,
    n_ants: int = N_ANTS,
    n_iterations: int = N_ITERATIONS,
    decay: float = DECAY,
) -> float:
    """Length of the shortest tour found; both matrices are float32 of shape (n, n)."""
    generator = torch.Generator().manual_seed(seed)
    pheromone, best = torch.ones_like(distances), float("inf")
    for _ in range(n_iterations):
        tours = walk(pheromone * heuristic, n_ants, generator)
        lengths = distances[tours, torch.roll(tours, -1, dims=1)].sum(dim=1)
        best = min(best, float(lengths.min()))
        mark(pheromone, tours, lengths, decay)
    return best


def evaluate(problem: AcoTsp, function: Callable[..., object]) -> float:
    """Mean length over the instances."""
    values = []
    for one in problem.instances:
        matrix = np.asarray(function(one.distances.copy()), dtype=np.float32)
        heuristic = torch.from_numpy(np.maximum(matrix, np.float32(1e-9)))
        values.append(shortest(torch.from_numpy(one.distances.astype(np.float32)), heuristic, one.seed))
    return float(np.mean(values))
