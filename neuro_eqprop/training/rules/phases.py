"""The phases of a batch, shared by the update rules: settle, check, summarize."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from neuro_eqprop.dynamics.field import Field, State
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.dynamics.solve import Anderson, Damped, Equilibrium, GaussSeidel, Inner
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.training.batch import Batch, BatchUpdate
from neuro_eqprop.training.config import Nudging, Rule, TrainingConfig
from neuro_eqprop.training.errors import DIVERGENCE_ADVICE, TrainingError
from neuro_eqprop.training.gradients.loss import cost_of, output_values
from neuro_eqprop.training.relax import Settling, relax
from neuro_eqprop.training.rules.asymmetric import adjoint_field


def settling(config: TrainingConfig, *, measured: bool) -> Settling:
    """The solvers that a configuration names."""
    inner: tuple[Inner, Inner]
    if config.together:
        inner = Damped(config.damping), Damped(config.damping)
    else:
        inner = GaussSeidel(False, config.damping), GaussSeidel(True, config.damping)
    free, nudged = (Anderson(i, config.anderson) for i in inner) if config.anderson else inner
    return Settling(free, nudged, config.tolerance, measured)


@dataclass(frozen=True, slots=True)
class SettledPhases:
    """The equilibria of a batch in its phases, of which the first is free."""

    free: Field
    schedule: Schedule
    phases: Mapping[str, Equilibrium]

    @property
    def states(self) -> dict[str, State]:
        """The state at the end of each phase."""
        return {name: settled.state for name, settled in self.phases.items()}

    @property
    def rest(self) -> Equilibrium:
        """The free equilibrium."""
        return self.phases[self.schedule[0].name]

    @property
    def steps(self) -> dict[str, float]:
        """Mean steps of a sample in the free phase and in a nudged one."""
        free, *nudged = [float(settled.steps.mean()) for settled in self.phases.values()]
        return {"free": free, "nudged": sum(nudged) / len(nudged)}

    def update(
        self, gradients: Mapping[str, Values], batch: Batch, config: TrainingConfig
    ) -> BatchUpdate:
        """The batch update with these gradients and the statistics of the phases."""
        return summarize(
            self.free,
            self.rest.state,
            batch,
            gradients,
            residual=float(self.rest.residual.max()) if batch.measured else 0.0,
            steps=self.steps if config.tolerance else None,
        )


def settle_phases(free: Field, batch: Batch, config: TrainingConfig) -> SettledPhases:
    """Settle a batch in the free phase and in the nudged ones."""
    schedule, solvers = config.schedule(batch.beta), settling(config, measured=batch.measured)
    nudge = adjoint_field if config.rule == Rule.ASYMMETRIC else None
    return SettledPhases(free, schedule, relax(free, batch.target, schedule, solvers, nudge))


def summarize(
    free: Field,
    rest: State,
    batch: Batch,
    gradients: Mapping[str, Values],
    *,
    residual: float = 0.0,
    steps: Mapping[str, float] | None = None,
) -> BatchUpdate:
    """Gradients with the loss and the correct predictions at the free equilibrium `rest`.

    For the squared error the prediction is read from the output rates: a free sweep updates the
    output last, so they rank the classes as the drive does, except where clipping makes ties.
    """
    ops, output = free.ops, output_values(free, rest)
    loss = float(cost_of(free, output, batch.target)) / len(batch.x)
    correct = int((ops.argmax(output) == ops.argmax(batch.target)).sum())
    return BatchUpdate(gradients, correct, loss, residual, steps)


def check_gradients(
    ops: Ops, network: Network, states: Mapping[str, State], gradients: Mapping[str, Values]
) -> None:
    """Raise TrainingError if the gradients are not finite, naming the first layer that is not."""
    # This array is small, and its sum is NaN or inf if any output rate is.
    if isfinite(float(gradients[network.output.name].sum())):
        return
    diverged = (
        f"layer {layer.name!r} in the {phase} phase"
        for phase, state in states.items()
        for layer in network.moving
        if not ops.is_finite(state[layer.name])
    )
    raise TrainingError(
        f"the rates diverged (NaN or inf), first {next(diverged, 'in the update')}; "
        f"{DIVERGENCE_ADVICE}"
    )


def refuse_holomorphic(config: TrainingConfig) -> None:
    """Raise TrainingError for holomorphic nudging, for rules that do not support it."""
    if config.nudging is Nudging.HOLOMORPHIC:
        raise TrainingError(
            f"rule {config.rule!r} does not support holomorphic nudging: use nudging "
            f"'centered', or rule 'hebbian', 'vector-field' or 'asymmetric'"
        )
