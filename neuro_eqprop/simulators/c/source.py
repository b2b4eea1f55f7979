"""The text of a C program: `net.h`, `net.c`, `weights.h` and `example.c`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from neuro_eqprop import __version__
from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.simulators.c.learning_source import (
    learning_declarations,
    learning_functions,
    learning_tables,
)
from neuro_eqprop.simulators.c.program import (
    INPUT_ONE,
    Cells,
    Program,
    SynapsePath,
    Table,
    c_type,
    limit,
    safe_text,
    tanh_table,
    type_bytes,
)
from neuro_eqprop.spiking.arithmetic import ONE, TOP
from neuro_eqprop.spiking.kinds import GradedNeurons, SpikingNeurons
from neuro_eqprop.spiking.synapses import ConvolutionSynapses, DenseSynapses, SparseSynapses

RANK = 32
"""Drives between two counts of the table of tanh."""


def indented(lines: Iterable[str], depth: int = 1) -> list[str]:
    """Lines, moved to the right."""
    return ["    " * depth + line if line else "" for line in lines]


def loop(index: str, size: int | str, body: Iterable[str]) -> list[str]:
    """A loop with a fixed bound."""
    bound = f"{size}u" if isinstance(size, int) else size
    head = f"for (uint32_t {index} = 0u; {index} < {bound}; {index}++) {{"
    return [head, *indented(body), "}"]


def when(condition: str, body: Iterable[str]) -> list[str]:
    """Statements with a condition."""
    return [f"if ({condition}) {{", *indented(body), "}"]


def function(head: str, body: Iterable[str], comment: str) -> list[str]:
    """A function with its comment."""
    return [f"/* {safe_text(comment)} */", head, "{", *indented(body), "}", ""]


def array(kind: str, name: str, values: Ints) -> list[str]:
    """The definition of an array, sixteen numbers a line; C has none without elements."""
    flat = [str(int(value)) for value in np.ravel(values)] or ["0"]
    rows = [", ".join(flat[k : k + 16]) + "," for k in range(0, len(flat), 16)]
    storage = "static " if kind.startswith("const") else ""
    return [f"{storage}{kind} {name}[{len(flat)}] = {{", *indented(rows), "};", ""]


def table_arrays(table: Table) -> list[tuple[str, str, Ints]]:
    """Type, name and values of the arrays of a table; weights are sorted by source."""
    synapses, kind = table.synapses, table.type if table.learns else f"const {table.type}"
    if isinstance(synapses, SparseSynapses):
        by_source = synapses.T
        targets = "const uint16_t" if synapses.shape[0] <= 2**16 else "const uint32_t"
        return [
            (kind, table.name, by_source.data.astype(np.int64)),
            (targets, f"{table.name}_target", by_source.indices.astype(np.int64)),
            ("const uint32_t", f"{table.name}_start", by_source.indptr),
        ]
    values = synapses.weight.T if isinstance(synapses, DenseSynapses) else synapses.values
    return [(kind, table.name, values.astype(np.int64))]


def weights_header(program: Program) -> str:
    """`weights.h`: the weights and biases."""
    lines = ["/* The weights and biases of the network; only net.c includes this file. */"]
    lines += ["#ifndef NET_WEIGHTS_H", "#define NET_WEIGHTS_H", "#include <stdint.h>", ""]
    for kind, name, values in flash_arrays(program):
        lines += array(kind, name, values)
    return "\n".join([*lines, "#endif", ""])


def flash_arrays(program: Program) -> Iterator[tuple[str, str, Ints]]:
    """All arrays of `weights.h`: type, name and values."""
    for table in program.tables:
        yield from table_arrays(table)
    for cells in program.cells:
        if cells.neurons.bias.any():
            yield f"const {cells.bias_type}", f"net_bias_{cells.name}", cells.neurons.bias
        neurons = cells.neurons
        if isinstance(neurons, GradedNeurons) and not neurons.neuron.activation.piecewise_linear:
            grows, last = tanh_table(neurons)
            bits = np.zeros(-(-(last + 1) // RANK) * RANK, dtype=np.int64)
            bits[1 : last + 1] = grows
            words = bits.reshape(-1, RANK)
            yield (
                "const uint32_t",
                f"net_grow_{cells.name}",
                (words << np.arange(RANK)).sum(axis=1),
            )
            ranks = np.concatenate([[0], np.cumsum(words.sum(axis=1))[:-1]])
            yield f"const {c_type(0, ranks[-1])}", f"net_rank_{cells.name}", ranks
    yield from learning_tables(program)


def array_bytes(arrays: Iterable[tuple[str, str, Ints]]) -> int:
    """The size of arrays in bytes."""
    return sum(values.size * type_bytes(kind) for kind, _, values in arrays)


def message_arrays(cells: Cells) -> list[tuple[str, str, str, int]]:
    """Type, name, comment and number of entries of the messages of a population.

    They are no members of its struct: where a loop walks through members of different sizes,
    gcc 12 confuses their addresses at -O2.
    """
    kind = cells.message_type
    arrays = [(kind, f"net_message_{cells.name}", "sent in the last step", cells.size)]
    if cells.past:
        size = cells.past * cells.size
        arrays.append((kind, f"net_past_{cells.name}", "sent in earlier steps", size))
    return arrays


def state_fields(program: Program, cells: Cells) -> list[tuple[str, str, str, int]]:
    """Type, name, comment and number of entries of the state of a population."""
    n = cells.size
    fields = [("int32_t", "drive", "the pre-activation of the last step", n)]
    if cells.graded:
        fields += [
            ("uint32_t", "sum", "what has arrived", n),
            ("int32_t", "state", "follows the activation of the drive", n),
            ("int32_t", "sent", "the sum of all messages", n),
        ]
    else:
        fields += [
            ("uint32_t", "sum", "the current, in 64ths", n),
            ("int32_t", "state", "the voltage, in 64ths", n),
        ]
    if cells.driven is not None:
        fields.append(("int32_t", "outside", "bias and current of the input", n))
    if cells.pulled:
        fields.append(("int32_t", "pull", "the target that the nudge pulls to", n))
    if any(path.beta and path.target == cells.name for path in program.paths):
        fields.append(("uint32_t", "nudge", "what has arrived with a gain of beta", n))
    if program.plastic is not None:
        fields.append(("int32_t", "trace", "the activity that synapses see", n))
    return fields


def state_bytes(program: Program) -> int:
    """The RAM of all states, of the readout, and of weights and tags that learn."""
    fields = [
        field
        for cells in program.cells
        for field in (*message_arrays(cells), *state_fields(program, cells))
    ]
    states = sum(type_bytes(kind) * count for kind, _, _, count in fields)
    weights = sum(table.synapses.values.size for table in program.tables if table.learns)
    counters = 16 if program.plastic is not None else 0
    return states + 8 * program[program.output].size + weights * (1 + 4) + counters


def header(program: Program) -> str:
    """`net.h`: sizes, states and functions."""
    output = program[program.output]
    lines = [
        f"/* {safe_text(program.title)}, exported by neuro_eqprop {safe_text(__version__)}. */",
        "#ifndef NET_H",
        "#define NET_H",
        "#include <stdint.h>",
        "",
        f"#define NET_INPUTS {program.features}u",
        f"#define NET_INPUT_ONE {INPUT_ONE} /* the integer input of a value of 1.0 */",
        f"#define NET_INPUT_MOST {program.input_most} /* larger inputs are clipped */",
        f"#define NET_CLASSES {output.size}u",
        f"#define NET_STEPS {program.steps}u /* steps of an inference */",
        f"#define NET_WINDOW {program.window}u /* last steps, whose drives net_run compares */",
        "",
    ]
    for cells in program.cells:
        lines += [f"/* Population {safe_text(cells.label)}. */", "typedef struct {"]
        for kind, name, comment, count in state_fields(program, cells):
            lines.append(f"    {kind} {name}[{count}]; /* {comment} */")
        lines += [
            f"}} net_layer_{cells.name}_t;",
            f"extern net_layer_{cells.name}_t net_layer_{cells.name};",
        ]
        for kind, name, comment, count in message_arrays(cells):
            lines.append(f"extern {kind} {name}[{count}]; /* {comment} */")
        lines.append("")
    lines += [
        "/* Reset all states and take an input. */",
        "void net_start(const int16_t x[NET_INPUTS]);",
        f"/* One step{' with the nudge beta / 4096' if program.nudged else ''}. */",
        f"void net_step({'int32_t beta' if program.nudged else 'void'});",
        "/* The class of an input: start, NET_STEPS steps, the largest mean drive. */",
        "uint32_t net_run(const int16_t x[NET_INPUTS]);",
        *learning_declarations(program),
        "",
        "#endif",
        "",
    ]
    return "\n".join(lines)


def source(program: Program) -> str:
    """`net.c`: the functions."""
    lines = [
        f"/* {safe_text(program.title)}, exported by neuro_eqprop {safe_text(__version__)}. */",
        '#include "net.h"',
        '#include "weights.h"',
        "",
        *(f"net_layer_{cells.name}_t net_layer_{cells.name};" for cells in program.cells),
        *(
            f"{kind} {name}[{count}];"
            for cells in program.cells
            for kind, name, _, count in message_arrays(cells)
        ),
        f"static int64_t net_total[{program[program.output].size}];",
        "",
        *helpers(program),
    ]
    for k, path in enumerate((*program.feeds, *program.paths)):
        lines += path_function(program, path, k)
    for cells in program.cells:
        lines += reach(cells)
        lines += advance(program, cells)
    lines += start(program) + step(program) + run(program)
    lines += learning_functions(program)
    return "\n".join(lines)


HELPERS = {
    "net_signed": """\
/* The signed number with these bits. */
static int32_t net_signed(uint32_t x)
{
    return x <= 0x7FFFFFFFu ? (int32_t)x : -(int32_t)(0xFFFFFFFFu - x) - 1;
}
""",
    "net_wrap": f"""\
/* x plus the multiple of 2^24 that brings it into -2^23 < x <= 2^23. */
static int32_t net_wrap(uint32_t x)
{{
    return (int32_t)((x + {TOP - 1}u) & {2 * TOP - 1}u) - {TOP - 1};
}}
""",
    "net_saturate": f"""\
/* x, clipped to 24 bits. */
static int32_t net_saturate(int32_t x)
{{
    return x < {1 - TOP} ? {1 - TOP} : x > {TOP - 1} ? {TOP - 1} : x;
}}
""",
    "net_part": f"""\
/* x part / {ONE}, truncated towards zero. */
static int32_t net_part(int32_t x, int32_t part)
{{
    return (int32_t)((int64_t)x * part / {ONE});
}}
""",
    "net_round": """\
/* x / 2^shift to the nearest integer, ties to even. */
static int32_t net_round(int32_t x, uint32_t shift)
{
    uint32_t size = x < 0 ? 0u - (uint32_t)x : (uint32_t)x;
    size = (size + ((1u << shift) >> 1) - 1u + ((size >> shift) & 1u)) >> shift;
    return x < 0 ? -(int32_t)size : (int32_t)size;
}
""",
}


def helpers(program: Program) -> list[str]:
    """The helper functions that the program calls."""
    spiking = any(not cells.graded for cells in program.cells)
    shifts = [s for cells in program.cells if cells.driven for s in cells.driven]
    thetas = [int(c.neurons.theta) for c in program.cells if isinstance(c.neurons, GradedNeurons)]
    dampings = [c.neurons.damping for c in program.cells if isinstance(c.neurons, GradedNeurons)]
    decays = [
        keep
        for c in program.cells
        if isinstance(c.neurons, SpikingNeurons)
        for keep in (c.neurons.keep_current, c.neurons.keep_voltage)
    ]
    partial = any(part not in (0, ONE) for part in (*dampings, *decays))
    kept = [
        c.neurons.keep_current % ONE for c in program.cells if isinstance(c.neurons, SpikingNeurons)
    ]
    spiking_nudge = any(path.beta and not program[path.target].graded for path in program.paths)
    used = {
        "net_signed": bool(program.feeds) or spiking_nudge or any(kept),
        "net_wrap": True,
        "net_saturate": spiking or bool(thetas),
        "net_part": program.nudged or partial,
        "net_round": any(s < 0 for s in shifts) or any(theta > 1 for theta in thetas),
    }
    return [HELPERS[name] for name, needed in used.items() if needed]


def path_function(program: Program, path: SynapsePath, number: int) -> list[str]:
    """The function that adds the messages of a source to the sums of a target."""
    target = program[path.target]
    field = "nudge" if path.beta else "sum"
    factor = path.factor if target.graded or path.beta or not path.source else 64 * path.factor
    onto, synapses = f"net_layer_{target.name}.{field}", path.table.synapses
    if not path.source:
        sent, label = "x[{}]", "input"
        most = program.input_most
        message = [
            "int32_t v = x[{}];",
            f"v = v < -{most} ? -{most} : v > {most} ? {most} : v;",
        ]
        if most >= 2**15 - 1:
            message = ["int32_t v = x[{}];"]
    else:
        origin = program[path.source]
        label = origin.label
        sent = f"net_message_{origin.name}[{{}}]"
        if path.delay > 1:
            sent = f"net_past_{origin.name}[{(path.delay - 2) * origin.size}u + {{}}]"
        message = [f"int32_t v = {sent};"]
    times = "" if factor == 1 else f" * {factor % 2**32}u"
    message.append(f"uint32_t m = (uint32_t)v{times};")
    weight = f"int32_t w = {path.table.name}[{{}}];"
    if isinstance(synapses, SparseSynapses):
        body = sparse(synapses, path, message, onto, weight)
    elif isinstance(synapses, ConvolutionSynapses):
        backwards = synapses.transposed != path.backwards
        body = convolution(synapses, message, onto, weight, backwards=backwards)
    elif isinstance(synapses, DenseSynapses):
        body = dense(synapses, path, message, onto, weight)
    else:  # a diagonal
        add = [weight.format("i"), f"{onto}[i] += m * (uint32_t)w;"]
        body = loop("i", target.size, [*(line.format("i") for line in message), *add])
    inputs = "const int16_t x[NET_INPUTS]" if not path.source else "void"
    what = f"{label} to {target.label}"
    if path.delay > 1:
        what += f", after {path.delay} steps"
    if path.beta:
        what += ", with a gain of beta"
    return function(f"static void net_path_{number}({inputs})", body, what)


def dense(
    synapses: DenseSynapses, path: SynapsePath, message: list[str], onto: str, weight: str
) -> list[str]:
    """The loops of a matrix."""
    targets, sources = synapses.shape
    place = f"i * {targets}u + j"
    if path.backwards:
        targets, sources = sources, targets
        place = f"j * {sources}u + i"
    add = loop("j", targets, [weight.format(place), f"{onto}[j] += m * (uint32_t)w;"])
    return loop("i", sources, [*(line.format("i") for line in message), *when("v != 0", add)])


def sparse(
    synapses: SparseSynapses, path: SynapsePath, message: list[str], onto: str, weight: str
) -> list[str]:
    """The loops of a sparse matrix; the inner one has the largest fan-out as its bound."""
    starts, name = synapses.T.indptr, path.table.name
    most = int(np.diff(starts).max(initial=1))
    bounds = [
        f"uint32_t first = {name}_start[i];",
        f"uint32_t size = {name}_start[i + 1u] - first;",
    ]
    at = "first + k"
    other = f"uint32_t j = {name}_target[{at}];"
    if path.backwards:
        parts = [other, *(line.format("j") for line in message)]
        add = loop(
            "k",
            most,
            when("k < size", [*parts, weight.format(at), f"{onto}[i] += m * (uint32_t)w;"]),
        )
        return loop("i", synapses.shape[1], [*bounds, *add])
    add = loop(
        "k", most, when("k < size", [other, weight.format(at), f"{onto}[j] += m * (uint32_t)w;"])
    )
    inside = [*(line.format("i") for line in message), *when("v != 0", [*bounds, *add])]
    return loop("i", synapses.shape[1], inside)


def convolution(
    synapses: ConvolutionSynapses, message: list[str], onto: str, weight: str, *, backwards: bool
) -> list[str]:
    """The loops of a convolution, or of its transpose."""
    outputs, channels, high, wide = synapses.kernel.shape
    _, tall, broad = synapses.image
    _, rows, columns = synapses.pooled
    _, out_rows, out_columns = synapses.output
    stride, padding, pool = synapses.stride, synapses.padding, synapses.pool
    kernel = weight.format(f"((o * {channels}u + c) * {high}u + a) * {wide}u + b")

    def inside(name: str, value: str, size: int, step: int) -> list[str]:
        """Lines that leave out a position beyond the edges; `value` may wrap below zero."""
        lines = [f"uint32_t {name} = {value};"]
        condition = f"{name} >= {size * step}u" + (
            f" || {name} % {step}u != 0u" if step > 1 else ""
        )
        lines += when(condition, ["continue;"])
        return [*lines, f"{name} /= {step}u;"] if step > 1 else lines

    if backwards:
        pixel = f"(c * {tall}u + y * {pool}u + p) * {broad}u + z * {pool}u + q"
        add = loop("p", pool, loop("q", pool, [kernel, f"{onto}[{pixel}] += m * (uint32_t)w;"]))
        column = [*inside("z", f"j * {stride}u + b - {padding}u", columns, 1), *add]
        row = [*inside("y", f"i * {stride}u + a - {padding}u", rows, 1), *loop("b", wide, column)]
        spread = loop("c", channels, loop("a", high, row))
        at = f"(o * {out_rows}u + i) * {out_columns}u + j"
        each = [*(line.format(at) for line in message), *when("v != 0", spread)]
        return loop("o", outputs, loop("i", out_rows, loop("j", out_columns, each)))
    place = f"(o * {out_rows}u + i) * {out_columns}u + j"
    column = inside("j", f"z / {pool}u + {padding}u - b", out_columns, stride)
    column += [kernel, f"{onto}[{place}] += m * (uint32_t)w;"]
    row = inside("i", f"y / {pool}u + {padding}u - a", out_rows, stride)
    spread = loop("o", outputs, loop("a", high, [*row, *loop("b", wide, column)]))
    at = f"(c * {tall}u + y) * {broad}u + z"
    each = [*(line.format(at) for line in message), *when("v != 0", spread)]
    return loop("c", channels, loop("y", tall, loop("z", broad, each)))


def reach(cells: Cells) -> list[str]:
    """The function of a curved activation: the rate that a drive aims at."""
    neurons = cells.neurons
    if not isinstance(neurons, GradedNeurons) or neurons.neuron.activation.piecewise_linear:
        return []
    _, last = tanh_table(neurons)
    name = cells.name
    body = [
        "uint32_t size = drive < 0 ? 0u - (uint32_t)drive : (uint32_t)drive;",
        f"size = size > {last}u ? {last}u : size;",
        f"uint32_t bits = net_grow_{name}[size / 32u];",
        "if (size % 32u != 31u) {",
        "    bits &= (2u << (size % 32u)) - 1u;",
        "}",
        "bits -= (bits >> 1) & 0x55555555u;",
        "bits = (bits & 0x33333333u) + ((bits >> 2) & 0x33333333u);",
        "bits = (bits + (bits >> 4)) & 0x0F0F0F0Fu;",
        f"int32_t rate = net_rank_{name}[size / 32u] + (int32_t)((bits * 0x01010101u) >> 24);",
        "return drive < 0 ? -rate : rate;",
    ]
    head = f"static int32_t net_reach_{name}(int32_t drive)"
    return function(head, body, f"tanh of {cells.label}: one more rate at each bit that is set")


def outside(cells: Cells) -> str:
    """The expression of bias, current and pull of unit i."""
    parts = []
    if cells.driven is not None:
        parts.append(f"net_layer_{cells.name}.outside[i]")
    elif cells.neurons.bias.any():
        parts.append(f"net_bias_{cells.name}[i]")
    if cells.pulled:
        parts.append(f"net_part(net_layer_{cells.name}.pull[i], beta)")
    return " + ".join(parts)


def clipped(value: str, low: int | None, high: int | None) -> list[str]:
    """Statements that clip a variable."""
    lines = []
    if low is not None:
        lines.append(f"{value} = {value} < {low} ? {low} : {value};")
    if high is not None:
        lines.append(f"{value} = {value} > {high} ? {high} : {value};")
    return lines


def advance(program: Program, cells: Cells) -> list[str]:
    """The function of a step of a population."""
    name, neurons, state = cells.name, cells.neurons, f"net_layer_{cells.name}"
    nudge = any(path.beta and path.target == name for path in program.paths)
    shown = outside(cells)
    body = []
    if cells.past:
        size, kept = cells.size, f"net_past_{cells.name}"
        for k in range(cells.past - 1, 0, -1):
            body += loop("i", size, [f"{kept}[{k * size}u + i] = {kept}[{(k - 1) * size}u + i];"])
        body += loop("i", size, [f"{kept}[i] = net_message_{cells.name}[i];"])
    if isinstance(neurons, GradedNeurons):
        each = graded(cells, neurons, state, shown, nudge=nudge)
    else:
        assert isinstance(neurons, SpikingNeurons)
        each = spiking(cells, neurons, state, shown, nudge=nudge)
    body += loop("i", cells.size, each)
    uses = nudge or cells.pulled
    head = f"static void net_step_{name}({'int32_t beta' if uses else 'void'})"
    return function(head, body, f"One step of {cells.label}")


def graded(
    cells: Cells, neurons: GradedNeurons, state: str, shown: str, *, nudge: bool
) -> list[str]:
    """The step of a graded unit."""
    drive = f"net_wrap({state}.sum[i])"
    if nudge:
        drive += f" + net_part(net_wrap({state}.nudge[i]), beta)"
    lines = [f"int32_t drive = {drive}{' + ' + shown if shown else ''};"]
    lines += ["int32_t aim = drive;", f"int32_t state = {state}.state[i];"]
    if neurons.neuron.activation.piecewise_linear:
        lines += clipped("aim", limit(neurons.low), limit(neurons.high))
    else:
        lines += [f"aim = net_reach_{cells.name}(drive);"]
    damping = neurons.damping
    change = "aim - state" if damping == ONE else f"net_part(aim - state, {damping})"
    shift = int(neurons.theta).bit_length() - 1
    count = f"net_round(state - {state}.sent[i], {shift}u)" if shift else f"state - {state}.sent[i]"
    return [
        *lines,
        f"state = net_saturate(state + ({change}));",
        f"int32_t count = {count};",
        f"{state}.drive[i] = drive;",
        f"{state}.state[i] = state;",
        f"{state}.sent[i] += count * {int(neurons.theta)};",
        f"net_message_{cells.name}[i] = ({cells.message_type})count;",
    ]


def spiking(
    cells: Cells, neurons: SpikingNeurons, state: str, shown: str, *, nudge: bool
) -> list[str]:
    """The step of a spiking unit; its current has decayed before input was added."""
    arrived = f"{state}.sum[i]"
    if nudge:
        arrived += f" + (uint32_t)net_part(net_signed({state}.nudge[i]), beta) * 64u"
    keep = int(neurons.keep_voltage)
    held = f"{state}.state[i]"
    held = held if keep == ONE else f"net_part({held}, {keep})" if keep else "0"
    reset = f"voltage - {neurons.threshold}" if neurons.subtract else "0"
    return [
        f"int32_t current = net_wrap({arrived});",
        f"int32_t drive = current{' + (' + shown + ') * 64' if shown else ''};",
        f"int32_t voltage = net_saturate({held} + drive);",
        f"int32_t fires = voltage >= {neurons.threshold};",
        *when("fires", [f"voltage = {reset};"]),
        *clipped("voltage", limit(neurons.floor), limit(neurons.ceiling)),
        f"{state}.sum[i] = (uint32_t)current;",
        f"{state}.drive[i] = drive;",
        f"{state}.state[i] = voltage;",
        f"net_message_{cells.name}[i] = (int8_t)fires;",
    ]


def rest(program: Program, cells: Cells) -> list[str]:
    """Statements that reset unit i."""
    state, neurons = f"net_layer_{cells.name}", cells.neurons
    half = neurons.threshold >> 1 if isinstance(neurons, SpikingNeurons) else 0
    lines = [f"net_message_{cells.name}[i] = 0;", f"{state}.drive[i] = 0;", f"{state}.sum[i] = 0u;"]
    lines.append(f"{state}.state[i] = {half};")
    names = {name for _, name, _, _ in state_fields(program, cells)}
    lines += [f"{state}.{name}[i] = 0;" for name in ("sent", "nudge", "pull") if name in names]
    return lines


def start(program: Program) -> list[str]:
    """The function that resets all states and takes the input."""
    body = ["(void)x;"] if all(cells.driven is None for cells in program.cells) else []
    for number, path in enumerate(program.feeds):
        first = all(other.target != path.target for other in program.feeds[:number])
        if first:
            size = program[path.target].size
            body += loop("i", size, [f"net_layer_{path.target}.sum[i] = 0u;"])
        body.append(f"net_path_{number}(x);")
    fed = {path.target for path in program.feeds}
    for cells in program.cells:
        state = f"net_layer_{cells.name}"
        lines = []
        if cells.driven is not None:
            took = f"net_signed({state}.sum[i])" if cells.name in fed else "x[i]"
            for shift in cells.driven:
                took = f"net_round({took}, {-shift}u)" if shift < 0 else times(took, shift)
            bias = f"net_bias_{cells.name}[i] + " if cells.neurons.bias.any() else ""
            lines = [f"{state}.outside[i] = {bias}{took};"]
        body += loop("i", cells.size, [*lines, *rest(program, cells)])
        if cells.past:
            body += loop("i", cells.past * cells.size, [f"net_past_{cells.name}[i] = 0;"])
    head = "void net_start(const int16_t x[NET_INPUTS])"
    return function(head, body, "Reset all states and take an input")


def times(value: str, shift: int) -> str:
    """A value times a power of two."""
    return f"{value} * {1 << shift}" if shift else value


def step(program: Program) -> list[str]:
    """The function of one step of all populations."""
    body = []
    for cells in program.cells:
        neurons, state = cells.neurons, f"net_layer_{cells.name}"
        nudge = any(path.beta and path.target == cells.name for path in program.paths)
        lines = []
        if isinstance(neurons, SpikingNeurons):
            keep = int(neurons.keep_current)
            if keep != ONE:
                held = f"net_part(net_signed({state}.sum[i]), {keep})"
                left = f"(uint32_t){held}" if keep else "0u"
                lines.append(f"{state}.sum[i] = {left};")
            if nudge:
                lines.append(f"{state}.nudge[i] = 0u;")
        if lines:
            body += loop("i", cells.size, lines)
    first = len(program.feeds)
    body += [f"net_path_{first + k}();" for k in range(len(program.paths))]
    for cells in program.cells:
        nudge = any(path.beta and path.target == cells.name for path in program.paths)
        body.append(f"net_step_{cells.name}({'beta' if nudge or cells.pulled else ''});")
    head = f"void net_step({'int32_t beta' if program.nudged else 'void'})"
    comment = "One step of all populations; what arrives was sent in earlier steps"
    return function(head, body, comment)


def run(program: Program) -> list[str]:
    """The function that classifies an input."""
    output = f"net_layer_{program.output}"
    add = when(
        "t + NET_WINDOW >= NET_STEPS",
        loop("i", "NET_CLASSES", [f"net_total[i] += {output}.drive[i];"]),
    )
    body = [
        "uint32_t best = 0u;",
        "net_start(x);",
        *loop("i", "NET_CLASSES", ["net_total[i] = 0;"]),
        *loop("t", "NET_STEPS", [f"net_step({'0' if program.nudged else ''});", *add]),
        *loop("i", "NET_CLASSES", when("net_total[i] > net_total[best]", ["best = i;"])),
        "return best;",
    ]
    head = "uint32_t net_run(const int16_t x[NET_INPUTS])"
    return function(head, body, "The class of an input: the unit with the largest mean drive")


def example(samples: Ints) -> str:
    """`example.c`: some samples and their classes."""
    rows = [", ".join(str(int(value)) for value in sample) for sample in samples]
    body = [
        "for (unsigned k = 0; k < sizeof samples / sizeof samples[0]; k++) {",
        '    printf("%u\\n", (unsigned)net_run(samples[k]));',
        "}",
        "return 0;",
    ]
    lines = [
        "/* Prints the class of each sample: cc -std=c99 -O2 net.c example.c && ./a.out */",
        "#include <stdio.h>",
        '#include "net.h"',
        "",
        f"static const int16_t samples[{len(rows)}][NET_INPUTS] = {{",
        *(f"    {{{row}}}," for row in rows),
        "};",
        "",
        "int main(void)",
        "{",
        *indented(body),
        "}",
        "",
    ]
    return "\n".join(lines)
