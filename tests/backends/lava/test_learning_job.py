"""Lessons for Lava as files, and what its learning engine cannot learn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.activations import HARD_SIGMOID
from neuro_eqprop.architectures import layered
from neuro_eqprop.backends import subprocess
from neuro_eqprop.backends.base import BackendError
from neuro_eqprop.backends.lava.learning.job import (
    LearningJob,
    LearningPopulation,
    formulas,
    literal,
    load,
    message_size,
    places,
    save,
)
from neuro_eqprop.backends.lava.learning.learner import LavaLearner, Progress
from neuro_eqprop.backends.learning import NO_SYNAPSES, nobody
from neuro_eqprop.backends.registry import learner_names
from neuro_eqprop.initialise import initialise
from neuro_eqprop.networks import Network
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.ir import Gain
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


def course(
    rule: LearningRule,
    *,
    code: Code = Code.RATE,
    feedback: float = 1.0,
    limit: float = 2.0,
    flaws: Nonidealities = Nonidealities(),  # noqa: B008 - frozen
    lessons: int = 3,
) -> LearningJob:
    network, coding = small(feedback=feedback), Coding(code)
    params = initialise(network, np.random.default_rng(0))
    plastic = make_plastic(network, params, PlasticityConfig(coding, rule, limit, 1e-3, flaws))
    x = np.random.default_rng(1).random((lessons, 4))
    stimulus = training_stimulus(network, x, np.eye(2)[np.arange(lessons) % 2], coding)
    rates = np.linspace(0.1, 0.1 / 3, lessons)
    return LearningJob(plastic, TrainingSamples(stimulus, rates, 2), (("input->hidden", 1, 2),))


@pytest.mark.parametrize("numbers", [None, ENGINE])
def test_a_course_is_what_it_was_after_a_file(numbers: LoihiEngine | None, tmp_path: Path) -> None:
    made = course(LearningRule(PHASES, 5.5, fresh=False, numbers=numbers))
    save(made, tmp_path)
    found = load(tmp_path)
    assert found.plastic.network.digest == made.plastic.network.digest
    assert (found.plastic.rule, found.plastic.plastic) == (made.plastic.rule, made.plastic.plastic)
    np.testing.assert_array_equal(found.lessons.rates, made.lessons.rates)
    assert (found.lessons.first, found.chosen) == (2, made.chosen)
    assert found.job.steps == made.plastic.rule.steps


def test_the_source_has_a_place_for_everything() -> None:
    made = course(LearningRule(PHASES, 5.0))
    found = places(made.job)
    assert set(found) == {("input", "current"), ("output", "pull")}
    taken = np.zeros(message_size(made.job), dtype=int)
    for place in found.values():
        taken[place] += 1
    np.testing.assert_array_equal(taken, [0] * 6 + [1] * 6)


def test_mirrors_learn_at_their_own_share_and_limit() -> None:
    made = course(LearningRule(PHASES, 5.0), feedback=0.5)
    back = made.learner("output->hidden")
    assert (back.share, back.limit) == (0.5, 1.0)
    dw = {name: formulas(made, made.plastic.projection(name))[0] for name in made.plastic.learns}
    assert dw["output->hidden"] == "1*2^-1*u0*t*y1*y3"
    assert dw["hidden->output"] == "u0*t*y1*y3"
    assert dw["always->hidden"] == "1*2^1*u0*t*y1*y3"


def test_shares_are_written_as_lavas_rules_have_them() -> None:
    assert [literal(share, "") for share in (1.0, 0.75, 20.0)] == ["", "3*2^-2*", "5*2^2*"]
    for share in (1.1, 9.0, 2.0**-8, 0.7):
        with pytest.raises(BackendError, match=r"'a->b' learns at .*below 8 times a power"):
            literal(share, "a->b")


def test_rules_are_those_of_the_numbers_and_codes() -> None:
    rules = {
        name: formulas(made, made.plastic.projection("input->hidden"))
        for name, made in (
            ("graded", course(LearningRule(PHASES, 5.0), code=Code.GRADED)),
            ("engine", course(LearningRule(PHASES, 5.0, numbers=ENGINE))),
        )
    }
    assert rules["graded"] == ("u0*t*y1*y3", "2*u0*x1*y1*y2 - u0*t*y3")
    assert rules["engine"] == ("2^-4*u0*t*y3", "2^-7*u0*x1*y1*y2 - u0*t*y3")


def refused(made: LearningJob, words: str) -> None:
    with pytest.raises(BackendError, match=words):
        LavaLearner().learn(made.plastic, made.lessons, synapses=NO_SYNAPSES, watch=nobody)


def test_what_the_engine_cannot_do_is_refused_with_the_reason() -> None:
    real = LearningRule(PHASES, 5.0)
    refused(course(real, lessons=0), "nothing to learn from")
    refused(
        course(LearningRule(PHASES, 5.0, numbers=IntegerArithmetic(1))),
        "one random number in a step.*engine = true",
    )
    refused(
        course(real, flaws=Nonidealities(weight_noise=0.1)), "pass on other weights than they have"
    )
    refused(course(real, feedback=0.7), "learns at 1.42.*below 8 times a power")
    made = course(real)
    nudge = replace(made.plastic.network.projections[-1], delay=2)
    assert nudge.gain is Gain.BETA
    projections = (*made.plastic.network.projections[:-1], nudge)
    network = replace(made.plastic.network, projections=projections)
    late = replace(made, plastic=replace(made.plastic, network=network))
    refused(late, "'output->output' has a delay")


def test_sums_beyond_32_bits_are_refused() -> None:
    made = course(LearningRule(PHASES, 5.0, numbers=ENGINE))
    fixed = made.plastic.network.fixed
    assert fixed is not None
    units = {name: unit * 2.0**-22 for name, unit in fixed.units.items()}
    network = replace(made.plastic.network, fixed=replace(fixed, units=units))
    refused(replace(made, plastic=replace(made.plastic, network=network)), "exceed 32 bits")


def test_graded_units_do_not_learn_in_fixed_point() -> None:
    with pytest.raises(PlasticityError, match="bytes without a sign"):
        course(LearningRule(PHASES, 5.0, numbers=ENGINE), code=Code.GRADED)


def test_progress_is_told_in_lessons_that_every_population_has_done(tmp_path: Path) -> None:
    made, seen = course(LearningRule(PHASES, 5.0)), list[int]()
    progress, steps = Progress(made, tmp_path, seen.append), made.plastic.rule.steps
    for done in ([0, 0, 0], [9, 2 * steps, steps - 1], [9, 2 * steps, steps], [9, 3 * steps, 99]):
        np.array(done, dtype=np.int64).tofile(tmp_path / subprocess.PROGRESS)
        progress.update()
    progress.finish()
    assert seen == [1, 2]


def test_a_process_knows_its_population() -> None:
    made = course(LearningRule(PHASES, 5.0))
    assert LearningPopulation(made.job, 1, Path(), made).population.name == "always"
    assert "lava" in learner_names()
