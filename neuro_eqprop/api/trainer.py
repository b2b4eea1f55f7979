"""`Trainer`: a training that is planned once and stepped in your own script."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from neuro_eqprop.api.model import Model
from neuro_eqprop.common.arrays import type_name
from neuro_eqprop.data import hold_out, load_data
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.runs.train import check_length, data_name
from neuro_eqprop.training import study as config
from neuro_eqprop.training.defaults import derive, is_complete
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.rules.base import Update
from neuro_eqprop.training.settings import Rule
from neuro_eqprop.training.study import CUSTOM, CUSTOM_RULE, Study
from neuro_eqprop.training.trained import TrainedNetwork

NO_DATA = ""
"""Data set of a study that is made from a model name, a network or a model."""


class Trainer(TrainingLoop):
    """A training that is planned once and taken step by step; `train` drives one to its end.

    Network, data and settings are checked and the optimizer is built here, once. Then train whole
    epochs of the data with `epoch`, or batches of your own with `step`.

    Parameters
    ----------
    network : str, Path, Network, Model or Study
        The name of a model, a network, or settings, as in `train`; or a model, whose parameters the
        training starts from.
    data : str, Path, Dataset or data in another form, optional
        The data set, as in `train`; it also states the shape of a sample and the classes.
    preset : str, optional
        The defaults of settings that are not stated, with the name of a model: "fast" (derived from
        model and data, by default), "exact" or "chip", see `neuro_eqprop.training.defaults`.
    rule : str or callable, optional
        The name of an update rule, or a function of ops (array operations), network, parameters,
        batch and rule settings that returns a `BatchUpdate`, as the registered rules are.
    **settings
        Settings by name, as in `train`.

    Attributes
    ----------
    study : Study
        The settings, complete.
    steps, epochs : int
        Steps taken, and epochs finished.
    finished : bool
        Whether all epochs are over, or `patience` ended the training.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> data = ne.load_data("digits")
    >>> trainer = ne.Trainer("layered", data, hidden=(16,), epochs=2, seed=0)
    >>> trainer.epoch()["test_accuracy"] > 0.5
    True
    >>> trainer.step(data.train.x[:32], data.train.y[:32]).loss < 1.0
    True
    >>> trainer.updates(data.train.x[:32], data.train.y[:32])["hidden->output"].shape
    (10, 16)
    >>> trainer.model().evaluate(data.test).accuracy > 0.5
    True
    """

    def __init__(
        self,
        network: str | Path | Network | TrainedNetwork | Study | None,
        data: Any = None,  # noqa: ANN401 - all that `load_data` takes
        *,
        preset: str | None = None,
        rule: str | Update | None = None,
        **settings: Any,  # noqa: ANN401
    ) -> None:
        base = starting_study(network)
        known = base.dataset if isinstance(base, Study) else base.get("dataset", NO_DATA)
        if data is None and known == NO_DATA:
            raise TypeError("train takes the data second: a name, a .npz file or a Dataset")
        whole = load_data(known if data is None else data)
        function = rule if callable(rule) else None
        if rule is not None:
            settings["rule"] = CUSTOM_RULE.name if callable(rule) else rule
        settings = {"dataset": data_name(data, whole, None), **settings}
        if isinstance(base, Study):
            refuse_preset(preset)
            study = config.adapt(base, settings)
        else:
            study = derive({**base, **config.flat_names(settings)}, whole, preset)
        part = study.training.validation
        loaded = hold_out(whole, part, study.seed) if part else whole
        params = None
        if isinstance(network, Network | TrainedNetwork):
            assert isinstance(base, Study)
            made = given_network(network, base, study)
            params = network.params if isinstance(network, TrainedNetwork) else None
        else:
            made = study.network(loaded)
        check_length(study, made, loaded)
        super().__init__(study, made, loaded, params=params, rule=function)

    def model(self) -> Model:
        """The network as it is trained now; that of the best epoch if `patience` ended it.

        Returns
        -------
        Model
            With copies of the parameters, the settings and the history.
        """
        return Model.of(super().model())


def starting_study(
    network: str | Path | Network | TrainedNetwork | Study | None,
) -> Study | dict[str, Any]:
    """Return the study before the settings are applied: of a model, network, study or file.

    For the name of a model, and a file that states a part of the settings, return these alone.
    """
    if isinstance(network, Study):
        return network
    if isinstance(network, TrainedNetwork) and network.study is not None:
        return replace(network.study, dataset=NO_DATA)
    if isinstance(network, Network | TrainedNetwork):
        plain = network if isinstance(network, Network) else network.network
        one_way = plain.layers_without_feedback and isinstance(network, TrainedNetwork)
        rule = Rule.ASYMMETRIC if one_way else Rule.HEBBIAN
        cost = "" if plain.cost is CUSTOM.cost else plain.cost.value
        return config.make_study(model=CUSTOM.name, dataset=NO_DATA, cost=cost, rule=rule)
    if not isinstance(network, str | Path):
        raise TypeError(
            f"train takes the name of a model, a Network, a Model or a Study first, not "
            f"{type_name(network)}"
        )
    if Path(network).suffix == ".toml":
        stated = config.read_settings(Path(network))
        return config.read(Path(network)) if is_complete(stated) else stated
    return {"model": str(network)}


def refuse_preset(preset: str | None) -> None:
    """Raise ValueError for a preset beside a network or a study, which have their settings."""
    if preset is not None:
        raise ValueError(
            f"preset {preset!r} is for the name of a model, and a network, a model and a "
            f"study have settings of their own: leave it out"
        )


def given_network(network: Network | TrainedNetwork, base: Study, study: Study) -> Network:
    """Return a network that was passed as an object, with the cost of the study.

    Raises ValueError for settings that would make another network.
    """
    for key, value in study.flat().items():
        shapes = key in ("model", "normalize") or hasattr(study.model, key)
        if shapes and key != "name" and value != base.get(key):
            raise ValueError(
                f"setting {key!r} (here {value!r}) shapes the network, which was given as an "
                f"object: leave it out, or name a model"
            )
    made = network.network if isinstance(network, TrainedNetwork) else network
    cost = study.training.cost
    return replace(made, cost=Cost(cost)) if cost else made
