"""The rule for Lava's engine, networks that it cannot learn, and learning experiments as files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.files import subprocess
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.engine import formulas, learner_of, literal
from neuro_eqprop.simulators.lava.learner import LavaLearner, ProgressMonitor
from neuro_eqprop.simulators.lava.learning_files import LearningExperiment, load, save
from neuro_eqprop.simulators.learning import LearningRecord
from neuro_eqprop.simulators.registry import learner_names
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.make_plastic import PlasticityConfig, make_plastic, training_stimulus
from neuro_eqprop.spiking.nonidealities import Nonidealities
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import (
    IntegerArithmetic,
    LearningRule,
    LoihiEngine,
    PlasticityError,
    TrainingSamples,
)

PHASES = PhaseLengths(3, 2, 2).schedule(beta=0.5, centered=True)
ENGINE = LoihiEngine(3, 100, -4, 0.1)


def small(*, feedback: float = 1.0) -> Network:
    rate = HARD_SIGMOID
    return layered(4, (3,), 2, hidden_rate=rate, output_rate=rate, feedback=feedback)


def learning(
    rule: LearningRule,
    *,
    code: Code = Code.RATE,
    feedback: float = 1.0,
    limit: float = 2.0,
    flaws: Nonidealities = Nonidealities(),  # noqa: B008 - frozen
    samples: int = 3,
) -> LearningExperiment:
    network, coding = small(feedback=feedback), Coding(code)
    params = initialize(network, np.random.default_rng(0))
    plastic = make_plastic(network, params, PlasticityConfig(coding, rule, limit, 1e-3, flaws))
    x = np.random.default_rng(1).random((samples, 4))
    stimulus = training_stimulus(network, x, np.eye(2)[np.arange(samples) % 2], coding)
    rates = np.linspace(0.1, 0.1 / 3, samples)
    record = LearningRecord((("input->hidden", 1, 2),))
    return LearningExperiment(plastic, TrainingSamples(stimulus, rates, 2), record)


@pytest.mark.parametrize("numbers", [None, ENGINE])
def test_a_saved_learning_experiment_loads_unchanged(
    numbers: LoihiEngine | None, tmp_path: Path
) -> None:
    made = learning(LearningRule(PHASES, 5.5, fresh=False, numbers=numbers))
    save(made, tmp_path)
    found = load(tmp_path)
    assert found.plastic.network.digest == made.plastic.network.digest
    assert (found.plastic.rule, found.plastic.plastic) == (made.plastic.rule, made.plastic.plastic)
    np.testing.assert_array_equal(found.training.rates, made.training.rates)
    assert (found.training.first, found.record) == (2, made.record)
    assert found.simulated.steps == made.plastic.rule.steps


def test_a_mirror_has_its_share_and_limit_scaled_by_the_feedback() -> None:
    made = learning(LearningRule(PHASES, 5.0), feedback=0.5)
    back = learner_of(made.plastic, "output->hidden")
    assert (back.share, back.limit) == (0.5, 1.0)
    dw = {
        name: formulas(made.plastic, made.plastic.projection(name))[0]
        for name in made.plastic.learns
    }
    assert dw["output->hidden"] == "1*2^-1*u0*t*y1*y3"
    assert dw["hidden->output"] == "u0*t*y1*y3"
    assert dw["always->hidden"] == "1*2^1*u0*t*y1*y3"


def test_shares_are_written_in_the_syntax_of_lavas_learning_rules() -> None:
    assert [literal(share, "") for share in (1.0, 0.75, 20.0)] == ["", "3*2^-2*", "5*2^2*"]
    for share in (1.1, 9.0, 2.0**-8, 0.7):
        with pytest.raises(BackendError, match=r"'a->b' learns at .*below 8 times a power"):
            literal(share, "a->b")


def test_learning_formulas_depend_on_the_code_and_the_number_format() -> None:
    rules = {
        name: formulas(made.plastic, made.plastic.projection("input->hidden"))
        for name, made in (
            ("graded", learning(LearningRule(PHASES, 5.0), code=Code.GRADED)),
            ("engine", learning(LearningRule(PHASES, 5.0, numbers=ENGINE))),
        )
    }
    assert rules["graded"] == ("u0*t*y1*y3", "2*u0*x1*y1*y2 - u0*t*y3")
    assert rules["engine"] == ("2^-4*u0*t*y3", "2^-7*u0*x1*y1*y2 - u0*t*y3")


def check_refused(made: LearningExperiment, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        LavaLearner().learn(made.plastic, made.training)


def test_unsupported_networks_are_refused_with_the_reason() -> None:
    real = LearningRule(PHASES, 5.0)
    check_refused(learning(real, samples=0), "no training samples")
    check_refused(
        learning(LearningRule(PHASES, 5.0, numbers=IntegerArithmetic(1))),
        "one random number per step.*engine = true",
    )
    check_refused(
        learning(real, flaws=Nonidealities(weight_noise=0.1)),
        "differ from the stored weights",
    )
    check_refused(learning(real, feedback=0.7), "learns at 1.42.*below 8 times a power")


def test_synaptic_input_beyond_32_bits_is_refused() -> None:
    made = learning(LearningRule(PHASES, 5.0, numbers=ENGINE))
    fixed = made.plastic.network.fixed
    assert fixed is not None
    units = {name: unit * 2.0**-22 for name, unit in fixed.units.items()}
    network = replace(made.plastic.network, fixed=replace(fixed, units=units))
    check_refused(replace(made, plastic=replace(made.plastic, network=network)), "exceed 32 bits")


def test_graded_units_do_not_learn_in_fixed_point() -> None:
    with pytest.raises(PlasticityError, match="unsigned bytes"):
        learning(LearningRule(PHASES, 5.0, numbers=ENGINE), code=Code.GRADED)


def test_progress_counts_samples_that_all_populations_have_done(tmp_path: Path) -> None:
    made, seen = learning(LearningRule(PHASES, 5.0)), list[int]()
    steps = made.plastic.rule.steps
    monitor = ProgressMonitor(tmp_path, steps, seen.append)
    for done in ([0, 0, 0], [9, 2 * steps, steps - 1], [9, 2 * steps, steps], [9, 3 * steps, 99]):
        np.array(done, dtype=np.int64).tofile(tmp_path / subprocess.PROGRESS)
        monitor.update()
    np.array([9, 3 * steps, 3 * steps], dtype=np.int64).tofile(tmp_path / subprocess.PROGRESS)
    monitor.update()
    assert seen == [1, 2]


def test_lava_can_learn() -> None:
    assert "lava" in learner_names()
