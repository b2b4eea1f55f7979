"""The part of a C program that learns: phases, traces, tags and commits in integers.

Random numbers are those of `spiking.counter_rng`. Where the reference rounds a product or a sum to
float64, the program rounds it to as many bits, so that weights are equal bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, frexp

import numpy as np

from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.simulators.c.program import Cells, Program, Table, beta_part, power
from neuro_eqprop.spiking.counter_rng import FIRST, SECOND, STRIDE, mix
from neuro_eqprop.spiking.kinds import GradedNeurons
from neuro_eqprop.spiking.plasticity import IntegerArithmetic, Plastic, PlasticNetwork

MANTISSA = 53
"""Bits of the numbers that the reference computes with."""

RANDOM = f"""
static uint64_t net_place; /* steps so far */
static uint64_t net_samples; /* samples so far */

/* A hash of 64 bits. */
static uint64_t net_mix(uint64_t z)
{{
    z = (z ^ (z >> 30)) * UINT64_C(0x{FIRST:X});
    z = (z ^ (z >> 27)) * UINT64_C(0x{SECOND:X});
    return z ^ (z >> 31);
}}

/* The random numbers of a group at a step or sample, without those of its units. */
static uint64_t net_row(uint64_t group, uint64_t t)
{{
    return net_mix(group + UINT64_C(0x{STRIDE:X}) * t);
}}

/* A random number of 53 bits. */
static uint64_t net_draw(uint64_t row, uint64_t unit)
{{
    return net_mix(row + UINT64_C(0x{STRIDE:X}) * unit) >> 11;
}}
"""
CHANGE = """
/* floor(tag eta + p 2^-53) with eta = mantissa 2^-shift, rounded as float64 is. */
static int32_t net_change(int32_t tag, uint64_t mantissa, uint32_t shift, uint64_t p)
{
    uint64_t size = tag < 0 ? (uint64_t)0 - (uint64_t)(int64_t)tag : (uint64_t)tag;
    uint64_t low = (mantissa & 0xFFFFFFFFu) * size;
    uint64_t high = (mantissa >> 32) * size + (low >> 32);
    uint64_t product, rest, half;
    uint32_t drop = 0u;
    low &= 0xFFFFFFFFu; /* the product is high 2^32 + low */
    for (uint32_t k = 0u; k < 32u; k++) {
        drop += (high >> k) >> 21 != 0u ? 1u : 0u; /* bits beyond the 53 of a product */
    }
    rest = low & ((UINT64_C(1) << drop) - 1u);
    product = (high << (32u - drop)) + (low >> drop);
    half = (UINT64_C(1) << drop) >> 1;
    if (drop != 0u && (rest > half || (rest == half && (product & 1u) != 0u))) {
        product++;
    }
    if (shift <= drop + 53u) { /* a multiple of 2^-53 */
        uint32_t left = drop + 53u - shift;
        uint64_t sum;
        if (left > 62u || product >> (62u - left) != 0u) {
            return tag < 0 ? -512 : 512; /* beyond every weight */
        }
        product <<= left;
        if (tag < 0 && product > p) {
            sum = net_float(product - p);
            return -(int32_t)((sum + (UINT64_C(1) << 53) - 1u) >> 53);
        }
        sum = tag < 0 ? p - product : net_float(p + product);
        return (int32_t)(sum >> 53);
    } else { /* below one half */
        uint32_t finer = shift - drop - 53u;
        uint64_t whole = finer > 63u ? 0u : product >> finer;
        uint64_t part = finer > 63u ? product : product & ((UINT64_C(1) << finer) - 1u);
        if (tag < 0) {
            return p < whole || (p == whole && part != 0u) ? -1 : 0;
        }
        if (p + whole >= UINT64_C(0x1FFFFFFFFFFFFF)) {
            int32_t up = finer <= 63u && part >= UINT64_C(1) << (finer - 1u);
            return p + whole > UINT64_C(0x1FFFFFFFFFFFFF) || up ? 1 : 0;
        }
        return 0;
    }
}
"""
FLOAT = """
/* x, rounded to 53 bits, ties to even. */
static uint64_t net_float(uint64_t x)
{
    uint32_t drop = 0u;
    uint64_t half;
    for (uint32_t k = 0u; k < 11u; k++) {
        drop += x >> k >> 53 != 0u ? 1u : 0u;
    }
    if (drop == 0u) {
        return x;
    }
    half = (UINT64_C(1) << drop) >> 1;
    return ((x + half - 1u + ((x >> drop) & 1u)) >> drop) << drop;
}
"""


def learned(program: Program) -> tuple[PlasticNetwork, IntegerArithmetic]:
    """The plastic network and its number format."""
    assert program.plastic is not None
    numbers = program.plastic.rule.numbers
    assert isinstance(numbers, IntegerArithmetic)
    return program.plastic, numbers


def learning_declarations(program: Program) -> list[str]:
    """What `net.h` declares for learning."""
    if program.plastic is None:
        return []
    lines = [
        "/* Pull the output to a class; steps with a beta other than zero nudge it. */",
        "void net_target(uint32_t label);",
        "/* Learn from one sample: all phases, then the commit of its batch. */",
        "void net_learn(const int16_t x[NET_INPUTS], uint32_t label);",
        "/* Weights that learn, sorted by source unit. */",
    ]
    for part, table in parts(program):
        lines.append(
            f"extern int8_t {table.name}[{table.synapses.values.size}]; "
            f"/* {label(program, part)} */"
        )
    return lines


def label(program: Program, part: Plastic) -> str:
    """A safe name of a projection."""
    plastic, _ = learned(program)
    projection = plastic.projection(part.name)
    names = {cells.label: cells.name for cells in program.cells}
    return f"{names[projection.source]} to {names[projection.target]}"


def parts(program: Program) -> list[tuple[Plastic, Table]]:
    """The plastic parts and their tables."""
    plastic, _ = learned(program)
    return list(zip(plastic.plastic, (t for t in program.tables if t.learns), strict=True))


def learning_tables(program: Program) -> Iterator[tuple[str, str, Ints]]:
    """The tables of decayed traces of spiking units: whole part, and fraction times 2^53."""
    if program.plastic is None or all(cells.graded for cells in program.cells):
        return
    plastic, numbers = learned(program)
    decayed = [plastic.rule.keep * trace for trace in range(numbers.top + 1)]
    yield "const uint16_t", "net_kept", np.array([floor(x) for x in decayed])
    fractions = [ceil((x - floor(x)) * 2**MANTISSA) for x in decayed]
    yield "const uint64_t", "net_kept_part", np.array(fractions, dtype=np.uint64)


def group(seed: int, number: int) -> str:
    """What the random numbers of a group are hashed from, as a constant."""
    start = mix(np.array([seed], dtype=np.uint64))
    mixed = mix(start + np.uint64(STRIDE) * np.array([number + 1], dtype=np.uint64))
    return f"UINT64_C(0x{int(mixed[0]):X})"


def learning_functions(program: Program) -> list[str]:
    """The functions that learn."""
    if program.plastic is None:
        return []
    lines = RANDOM.splitlines() + FLOAT.splitlines()
    graded = [cells for cells in program.cells if cells.graded]
    first = 0
    for cells in program.cells:
        trace = graded_trace if cells.graded else spiking_trace
        lines += trace(program, cells, first)
        first += cells.size
    lines += [*CHANGE.splitlines(), ""]
    for k, (part, table) in enumerate(parts(program)):
        lines += gather(program, part, table, k)
        lines += commit(program, part, table, k)
    lines += target(program)
    traces = {
        "spiking": [f"net_trace_{c.name}();" for c in program.cells if not c.graded],
        "graded": [f"net_trace_{c.name}();" for c in graded],
    }
    return lines + learn(program, traces)


def spiking_trace(program: Program, cells: Cells, first: int) -> list[str]:
    """The trace of a spiking population."""
    plastic, numbers = learned(program)
    own = f"net_layer_{cells.name}"
    return [
        f"static void net_trace_{cells.name}(void)",
        "{",
        f"    uint64_t row = net_row({group(numbers.seed, 0)}, net_place);",
        f"    for (uint32_t i = 0u; i < {cells.size}u; i++) {{",
        f"        int32_t r = {own}.trace[i];",
        "        if (r != 0) {",
        f"            uint64_t p = net_draw(row, {first}u + i);",
        "            r = net_kept[r] + (p < net_kept_part[r] ? 1 : 0);",
        "        }",
        f"        if (net_message_{cells.name}[i] != 0) {{",
        f"            r += {plastic.rule.impulse};",
        f"            r = r > {numbers.top} ? {numbers.top} : r;",
        "        }",
        f"        {own}.trace[i] = r;",
        "    }",
        "}",
        "",
    ]


def graded_trace(program: Program, cells: Cells, first: int) -> list[str]:
    """The trace of a graded population: its sum of messages, rounded at random."""
    _, numbers = learned(program)
    own, neurons = f"net_layer_{cells.name}", cells.neurons
    assert isinstance(neurons, GradedNeurons)
    finer = -power(neurons.arithmetic.unit)
    return [
        f"static void net_trace_{cells.name}(void)",
        "{",
        f"    uint64_t row = net_row({group(numbers.seed, 0)}, net_place);",
        f"    for (uint32_t i = 0u; i < {cells.size}u; i++) {{",
        f"        int32_t sent = {own}.sent[i];",
        "        uint64_t r = 0u;",
        "        if (sent > 0) {",
        f"            uint64_t sum = (uint64_t)sent * {numbers.top}u << {MANTISSA - finer};",
        f"            r = net_float(sum + net_draw(row, {first}u + i)) >> {MANTISSA};",
        f"            r = r > {numbers.top}u ? {numbers.top}u : r;",
        "        }",
        f"        {own}.trace[i] = (int32_t)r;",
        "    }",
        "}",
        "",
    ]


def gather(program: Program, part: Plastic, table: Table, number: int) -> list[str]:
    """The function that adds to the tags of a part."""
    plastic, _ = learned(program)
    projection = plastic.projection(part.name)
    names = {cells.label: cells.name for cells in program.cells}
    source, onto = names[projection.source], names[projection.target]
    targets, sources = table.synapses.shape
    return [
        f"static int32_t net_tag_{number}[{targets * sources}];",
        "",
        f"static void net_gather_{number}(int32_t gate)",
        "{",
        f"    for (uint32_t i = 0u; i < {sources}u; i++) {{",
        f"        int32_t pre = gate * net_layer_{source}.trace[i];",
        "        if (pre != 0) {",
        f"            for (uint32_t j = 0u; j < {targets}u; j++) {{",
        f"                net_tag_{number}[i * {targets}u + j] += pre * net_layer_{onto}.trace[j];",
        "            }",
        "        }",
        "    }",
        "}",
        "",
    ]


def commit(program: Program, part: Plastic, table: Table, number: int) -> list[str]:
    """The function that changes the weights of a part by its tags."""
    plastic, numbers = learned(program)
    batch = plastic.rule.batch
    eta = float(plastic.etas(np.full(batch, program.rate))[-1, number])
    fraction, exponent = frexp(eta)
    mantissa, shift = int(fraction * 2**MANTISSA), MANTISSA - exponent
    row = [p.name for p in plastic.network.projections].index(part.name)
    low, high = numbers.range
    size = table.synapses.values.size
    return [
        f"static void net_commit_{number}(void)",
        "{",
        f"    uint64_t row = net_row({group(numbers.seed, 1 + row)}, net_samples);",
        f"    for (uint32_t k = 0u; k < {size}u; k++) {{",
        f"        if (net_tag_{number}[k] != 0) {{",
        f"            int32_t w = {table.name}[k]",
        f"                + net_change(net_tag_{number}[k], UINT64_C({mantissa}), {shift}u,",
        "                           net_draw(row, k));",
        f"            w = w < {low} ? {low} : w > {high} ? {high} : w;",
        f"            {table.name}[k] = (int8_t)w;",
        f"            net_tag_{number}[k] = 0;",
        "        }",
        "    }",
        "}",
        "",
    ]


def target(program: Program) -> list[str]:
    """The function that sets the target."""
    output = program[program.output]
    one = round(1.0 / output.neurons.arithmetic.unit)
    return [
        "void net_target(uint32_t label)",
        "{",
        "    for (uint32_t i = 0u; i < NET_CLASSES; i++) {",
        f"        net_layer_{output.name}.pull[i] = i == label ? {one} : 0;",
        "    }",
        "}",
        "",
    ]


def learn(program: Program, traces: dict[str, list[str]]) -> list[str]:
    """The function that learns from a sample."""
    plastic, _ = learned(program)
    rule, graded = plastic.rule, traces["graded"]
    lines = [
        "void net_learn(const int16_t x[NET_INPUTS], uint32_t label)",
        "{",
        "    net_start(x);",
        "    net_target(label);",
    ]
    count = len(plastic.plastic)
    for phase, gate in zip(rule.schedule, rule.gates, strict=True):
        before = phase.steps - phase.window if gate else phase.steps
        for steps, gathers in ((before, False), (phase.steps - before, True)):
            if not steps:
                continue
            body = [f"net_step({beta_part(phase.beta)});", *traces["spiking"]]
            if gathers:
                body += graded + [f"net_gather_{k}({int(gate)});" for k in range(count)]
            lines.append(f"    for (uint32_t t = 0u; t < {steps}u; t++) {{")
            lines += [f"        {line}" for line in [*body, "net_place++;"]]
            lines.append("    }")
    for cells in program.cells:
        if not cells.graded:
            lines += [
                f"    for (uint32_t i = 0u; i < {cells.size}u; i++) {{",
                f"        net_message_{cells.name}[i] = 0;",
                "    }",
            ]
    lines += [f"    {line}" for line in traces["spiking"]]
    lines.append("    net_place++;")
    commits = [f"net_commit_{k}();" for k in range(count)]
    if rule.batch > 1:
        lines.append(f"    if (net_samples % {rule.batch}u == {rule.batch - 1}u) {{")
        lines += [f"        {line}" for line in commits]
        lines.append("    }")
    else:
        lines += [f"    {line}" for line in commits]
    return [*lines, "    net_samples++;", "}", ""]
