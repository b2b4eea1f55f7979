"""The recorded spikes of a placed network as files of SANA-FE, and their time in its cycle mode.

SANA-FE (Boyle et al. 2025) simulates the messages of a chip on its mesh. Its neurons replay the
recorded spikes, so that both sides have equal spikes on equal cores, with the constants of the
profile. Populations outside the chip send from a core behind those of the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from neuro_eqprop.chips.deliveries import cores_of
from neuro_eqprop.chips.energy.time import barrier_seconds
from neuro_eqprop.chips.noc_traffic import Mesh, mesh_of
from neuro_eqprop.chips.placement import Placement
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.workload import ProjectionShape, Workload
from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.files.write import make_folder, temporary_folder, write_text

ARCHITECTURE, NETWORK = "architecture.yaml", "network.yaml"
LINK_BUFFER = 16
EDGE = "[weight: 0.0]"
"""Weights are zero, since neurons replay their spikes; they cost the same."""


class SanafeError(ValueError):
    """SANA-FE cannot run a workload; the message says why."""


def write_sanafe(
    folder: str | Path, workload: Workload, placement: Placement, profile: Profile
) -> Path:
    """Write the architecture and the network with its spikes; return the folder.

    ``sanafe.load_arch`` and ``sanafe.load_net`` read them.
    """
    mesh, known = mesh_of(profile)
    if not known or placement.chips not in (None, 1) or not placement.allocations:
        raise SanafeError("SANA-FE takes a network that is placed on one chip with a known mesh")
    sizes = {each.name: each.size for each in workload.shape.populations}
    for name, size in sizes.items():
        recorded = workload.by_step.get(name)
        if recorded is None or recorded.shape[1] != size:
            raise SanafeError(
                f"SANA-FE replays the spikes of every neuron; those of {name!r} were not recorded"
            )
    path = make_folder(Path(folder))
    places = neuron_places(workload, placement)
    most = max(int(np.bincount(np.concatenate(list(places.values()))).max()), 1)
    write_text(path / ARCHITECTURE, architecture(profile, mesh, most))
    write_text(path / NETWORK, "\n".join(network_lines(workload, places, mesh)) + "\n")
    return path


def neuron_places(workload: Workload, placement: Placement) -> dict[str, Ints]:
    """The core of each neuron; that of input from outside is behind those of the network."""
    places = {}
    for each in workload.shape.populations:
        if each.off_chip:
            places[each.name] = np.full(each.size, placement.cores_used)
        else:
            own = placement[each.name]
            places[each.name] = own.first_core + cores_of(workload.shape, own)
    return places


def architecture(profile: Profile, mesh: Mesh, neurons: int) -> str:
    """The chip as SANA-FE describes it, with the constants of a profile."""

    def cost(key: str) -> float:
        found = profile.known(key)
        return 0.0 if found is None else found.value

    tiles = mesh.width * mesh.height
    # Between the entries of its table, SANA-FE takes the one below: all of them are written.
    barrier = ", ".join(f"{n}: {barrier_seconds(profile, n, 1):.4g}" for n in range(1, tiles + 1))
    idle = "neuron_update"
    units = "\n".join(
        f"""            - name: {name}[0..{neurons - 1}]
              attributes:
                model: input
                energy_access_neuron: {cost(f"energy.{idle}") * own}
                latency_access_neuron: {cost(f"time.{idle}") * own}
                energy_update_neuron: 0.0
                latency_update_neuron: 0.0
                energy_spike_out: {(cost("energy.neuron_spiking") - cost(f"energy.{idle}")) * own}
                latency_spike_out: {(cost("time.neuron_spiking") - cost(f"time.{idle}")) * own}"""
        for name, own in (("neuron", 1), ("entry", 0))
    )
    ways = "\n".join(
        f"        energy_{way}_hop: {cost(f'energy.{axis}')}\n"
        f"        latency_{way}_hop: {cost(f'time.{axis}')}"
        for way, axis in (
            *(("north", "hop_ns"), ("south", "hop_ns"), ("east", "hop_ew"), ("west", "hop_ew")),
        )
    )
    return f"""architecture:
  name: {profile.name}
  attributes:
    topology: mesh
    width: {mesh.width}
    height: {mesh.height}
    link_buffer_size: {LINK_BUFFER}
    sync_model: table
    latency_sync: {{ {barrier} }}
  tile:
    - name: tile[0..{tiles - 1}]
      attributes:
{ways}
      core:
        - name: core[0..{mesh.cores_per_tile - 1}]
          attributes:
            buffer_position: soma
            buffer_inside_unit: false
            max_neurons_supported: {neurons}
          axon_in:
            - name: axon_in
              attributes:
                energy_message_in: 0.0
                latency_message_in: {cost("time.message_in")}
          synapse:
            - name: synapse
              attributes:
                model: current_based
                energy_process_spike: {cost("energy.synop")}
                latency_process_spike: {cost("time.synop")}
          dendrite:
            - name: dendrite
              attributes:
                model: accumulator
                energy_update: 0.0
                latency_update: 0.0
          soma:
{units}
          axon_out:
            - name: axon_out
              attributes:
                energy_message_out: {cost("energy.message")}
                latency_message_out: {cost("time.message_out")}
"""


def network_lines(workload: Workload, places: dict[str, Ints], mesh: Mesh) -> Iterator[str]:
    """The network with its recorded spikes and the core of every neuron."""
    yield "network:\n  name: recorded\n  groups:"
    for each in workload.shape.populations:
        yield f"    - name: {each.name}\n      attributes: []\n      neurons:"
        for k, spikes in enumerate((workload.by_step[each.name] != 0).T.astype(int).tolist()):
            yield f"        - {k}: [spikes: {spikes}]"
    yield "  edges:"
    for projection in workload.shape.projections:
        for source, targets in enumerate(targets_of(workload, projection)):
            for target in targets:
                yield f"    - {projection.source}.{source} -> {projection.target}.{target}: {EDGE}"
    yield "mappings:"
    used: dict[int, int] = {}
    for each in workload.shape.populations:
        unit = "entry" if each.off_chip else "neuron"
        for k, core in enumerate(places[each.name].tolist()):
            tile, own = divmod(core, mesh.cores_per_tile)
            slot = used.get(core, 0)
            used[core] = slot + 1
            yield f'  - {each.name}.{k}: [core: {tile}.{own}, soma: "{unit}[{slot}]"]'


def targets_of(workload: Workload, projection: ProjectionShape) -> list[list[int]]:
    """The targets of each source neuron; evenly spread where only their number is known."""
    source, size = workload.shape[projection.source].size, workload.shape[projection.target].size
    if projection.spans is not None or projection.convolution is not None:
        one = np.eye(source, dtype=bool)
        return [np.flatnonzero(row).tolist() for row in projection.touches(one, size)]
    fan_out = max(1, round(projection.synapses / source))
    return [
        sorted({(k + j * size // fan_out) % size for j in range(fan_out)}) for k in range(source)
    ]


def sanafe_seconds(workload: Workload, placement: Placement, profile: Profile) -> float:
    """Seconds of one sample by SANA-FE in its cycle mode."""
    try:
        import sanafe
    except ImportError:
        raise SanafeError(
            "SANA-FE is not installed; install it with `pip install sanafe`, or take the time of "
            "a step from the model"
        ) from None
    recorded = max(len(each) for each in workload.by_step.values()) if workload.by_step else 0
    with temporary_folder() as folder:
        path = write_sanafe(folder, workload, placement, profile)
        parts = sanafe.load_arch(str(path / ARCHITECTURE))
        chip = sanafe.SpikingChip(parts)
        chip.load(sanafe.load_net(str(path / NETWORK), parts))
        found = chip.sim(recorded, timing_model="cycle")
    return float(found["sim_time"]) / recorded * workload.steps
