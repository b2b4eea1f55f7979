"""Holomorphic equilibrium propagation: nudges around a circle in the complex plane.

With N nudges beta_k = beta exp(2 pi i k / N) and p(s) the products of the rule, the update is the
first Fourier coefficient of p(s(beta_k)) over the circle (Laborieux & Zenke 2022):

    dtheta = Re( 1/N  sum over k of p(s_k) / beta_k )

It equals minus the gradient up to order N in beta where all activations are smooth.
"""

from __future__ import annotations

from cmath import exp, pi
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch

from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.solve import Stop, solve
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.rules.asymmetric import adjoint_field, vector_field_sum
from neuro_eqprop.training.rules.base import Batch, BatchUpdate, TrainingError
from neuro_eqprop.training.rules.hebbian import hebbian_sum
from neuro_eqprop.training.rules.phases import (
    SettledPhases,
    check_gradients,
    settling,
    tolerance_of,
)
from neuro_eqprop.training.settings import VECTOR_FIELDS, Rule, RuleSettings


def holomorphic(
    ops: Ops,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    settings: RuleSettings,
) -> BatchUpdate:
    """The update of a batch from `settings.points` nudges around a circle of radius beta."""
    if not isinstance(ops, TorchOps):
        raise TrainingError("holomorphic nudging needs the complex numbers of torch: use TorchOps")
    beta = settings.beta if batch.beta is None else batch.beta
    solvers = settling(settings, measured=batch.measured)
    free = field(ops, network, params, batch.x)
    tolerance = tolerance_of(network, settings)
    stop = Stop(tolerance, settings.free_steps, batch.measured)
    rest = solve(free, free.zero_state(), solvers.free, stop)

    dtype = torch.complex128 if ops.dtype == torch.float64 else torch.complex64
    complex_ops = replace(ops, dtype=dtype)
    complex_params = {name: p.to(dtype) for name, p in params.items()}
    x, target = batch.x.to(dtype), batch.target.to(dtype)
    s0 = {name: s.to(dtype) for name, s in rest.state.items()}
    base = field(complex_ops, network, complex_params, x)
    base = adjoint_field(base, s0) if settings.name == Rule.ASYMMETRIC else base

    phases, coefficients = {"free": rest}, {}
    for k in range(settings.points):
        root = exp(2j * pi * k / settings.points)
        stop = Stop(tolerance, settings.nudged_steps, measured=False)
        nudged = base.nudged(target, beta * root)
        phases[f"point{k}"] = solve(nudged, s0, solvers.nudged, stop)
        coefficients[f"point{k}"] = -1.0 / (len(x) * settings.points * beta * root)
    states = {name: phases[name].state for name in coefficients}
    rule = hebbian_sum if settings.name not in VECTOR_FIELDS else partial(vector_field_sum, s0=s0)
    update = rule(
        complex_ops,
        base.network,
        x,
        states=states,
        coefficients=coefficients,
        params=complex_params,
    )
    gradients = {name: change.real.contiguous() for name, change in update.items()}
    check_gradients(ops, network, {"free": rest.state, **states}, gradients)
    return SettledPhases(free, settings.schedule(), phases).update(gradients, batch, settings)
