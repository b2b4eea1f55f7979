"""The part of a report on energy: every chip, and the terms of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from typing import Any

from neuro_eqprop.hardware.profile import Boundary
from neuro_eqprop.html_report import html as text
from neuro_eqprop.io.energy_file import ChipEstimateRecord, EnergyRecord, Term, number, plain, term

USES = ("inference", "learning")


def shown(bills: EnergyRecord) -> list[ChipEstimateRecord]:
    """The bills whose terms can be drawn, those that fit first."""
    drawn = [bill for bill in bills.chips if any(term.joules > 0 for term in bill.terms)]
    return sorted(drawn, key=lambda bill: (bill.facts.get("fits") is not True, bill.use))


def headline(bills: EnergyRecord) -> ChipEstimateRecord | None:
    """The first chip the network fits on and whose inference has a total."""
    totals = [b for b in bills.chips if b.total and b.use == "inference"]
    fitting = [b for b in totals if b.facts.get("fits") is True]
    return next(iter(fitting or totals), None)


def chart(bills: EnergyRecord) -> dict[str, Any]:
    """What the script draws: bars of all chips, the terms of each bill, accuracy for joules."""
    terms = [
        {
            "name": f"{bill.title}: {bill.use}",
            "terms": [asdict(term) for term in bill.terms if term.joules > 0],
            "total": asdict(bill.total) if bill.total and bill.total.joules > 0 else None,
        }
        for bill in shown(bills)
    ]
    bars = {use: stacked(bills, use) for use in USES}
    return {"bars": bars, "bills": terms, "curves": bills.curves}


def stacked(bills: EnergyRecord, use: str) -> list[dict[str, Any]]:
    """A row for each chip, those that enclose the same together, then those without joules."""
    rows: list[dict[str, Any]] = []
    for bill in (bill for bill in bills.chips if bill.use == use):
        total = bill.total if bill.total and bill.total.joules > 0 else None
        whole = sum(term.joules for term in bill.terms) or 1.0
        parts = {term.name: term.joules / whole for term in bill.terms if total}
        told = "" if total else bill.reason or place(bill)
        name = bill.title + (" *" if bill.changes else "")
        held = asdict(total) if total else {"joules": None, "low": None, "high": None}
        least = bool(bill.unknown)
        row = {"group": bill.boundary if total else "", "parts": parts, "told": told}
        rows.append(held | row | {"name": name, "least": least, "dense": False})
    for device, boundary in bills.devices if use == "inference" else ():
        if device.joules > 0:
            row = {"group": boundary, "parts": {}, "told": ""}
            rows.append(asdict(device) | row | {"least": False, "dense": True})
    order = {plain(boundary.value): place for place, boundary in enumerate(Boundary)}
    return sorted(rows, key=lambda row: (order.get(row["group"], 99), -(row["joules"] or 0.0)))


def spread(term: Term) -> str:
    """The range of a term."""
    return f"{text.quantity(term.low, 'J')} to {text.quantity(term.high, 'J')}"


def body(bills: EnergyRecord, figures: Sequence[str]) -> str:
    """The whole part; `figures` are the places of the bars, the terms and the curve."""
    details = "".join(
        f'<div class="bill" data-bill="{k}">{bill_text(bill)}</div>'
        for k, bill in enumerate(shown(bills))
    )
    choice = '<div class="controls"><label>chip <select id="chip"></select></label></div>'
    drawn = (
        f'{choice}<div class="grid two">{figures[1]}<div>{details}</div></div>' if details else ""
    )
    uses = '<div class="controls"><label>joules of <select id="use"></select></label></div>'
    return (
        "<p>An estimate: counted events times published costs, not a measurement. What nobody "
        f"published is listed and not guessed.{escape(counted(bills))}</p>"
        f"{uses}{figures[0]}<p class='small'>A bar ends at its joules, on a logarithmic scale; its "
        "colours are shares of the sum, its whisker is 95 % of the draws over the ranges of the "
        "costs. Only bars under one heading compare; (≥) stands where costs are unknown.</p>"
        f"{own_values(bills)}{winners(bills)}{trade(bills, figures[2])}{drawn}{chips_table(bills)}"
        f"{without_learning(bills)}"
    )


def counted(bills: EnergyRecord) -> str:
    """What was counted, in a sentence."""
    held = bills.counted
    samples, steps = number(held.get("samples")), number(held.get("steps"))
    if samples is None or steps is None:
        return ""
    code = f" in code {held['code']}" if held.get("code") else ""
    told = f" Counted on {text.count(samples)} samples of {text.count(steps)} steps{code}"
    return f"{told}, the input as {held.get('input_coding')}."


def own_values(bills: EnergyRecord) -> str:
    """Values that are not those of the profiles, chip by chip."""
    found = [bill for bill in bills.chips if bill.changes and bill.use == "inference"]
    lines = [f"{bill.title}: {change}" for bill in found for change in bill.changes]
    return text.listing("* Not as the profiles say", lines)


def winners(bills: EnergyRecord) -> str:
    """Whether spikes win against dense machines, a line a chip."""
    titles = {bill.profile: bill.title for bill in bills.chips}
    lines = [f"{titles.get(name, name)}: {words}" for name, words in bills.verdicts.items()]
    return text.listing("Do spikes win? Against a dense pass at a stated batch:", lines)


def trade(bills: EnergyRecord, figure: str) -> str:
    """Accuracy against joules, with the best trade marked."""
    if not any(bills.curves.values()):
        return ""
    choice = '<div class="controls"><label>chip <select id="trade-chip"></select></label></div>'
    return (
        f"{choice}{figure}<p class='small'>Each point is a code and a number of steps; the best "
        "trade (star) is the cheapest within half a percent of the most accurate.</p>"
    )


def bill_text(bill: ChipEstimateRecord) -> str:
    """What an estimate says besides its terms."""
    said: list[str] = []
    if bill.total:
        least = "at least " if bill.unknown else ""
        said.append(f"{least}{text.quantity(bill.total.joules, 'J')} ({spread(bill.total)})")
    seconds = number(bill.facts.get("seconds"))
    if seconds is not None:
        said.append(f"{text.quantity(seconds, 's')} long")
    product = number(bill.facts.get("energy_delay_product"))
    if product is not None:
        said.append(f"energy times delay {product:.2g} J\u00a0s")
    said.append(place(bill))
    said.append(whole_training(bill))
    sentence = f"<p>{escape('; '.join(part for part in said if part))}.</p>"
    return sentence + text.listing("Not known, so not in the sum", bill.unknown)


def whole_training(bill: ChipEstimateRecord) -> str:
    """The joules of all lessons together, where learning has been estimated."""
    told = bill.facts.get("training")
    whole = term("training", told) if isinstance(told, Mapping) else None
    if whole is None or not isinstance(told, Mapping):
        return ""
    least = "at least " if bill.unknown else ""
    many = text.count(told.get("presentations"))
    joules = f"{least}{text.quantity(whole.joules, 'J')} ({spread(whole)})"
    return f"the whole training of {many} lessons takes {joules}"


def place(bill: ChipEstimateRecord) -> str:
    """Whether it fits, and on what."""
    fits, cores, chips = (bill.facts.get(name) for name in ("fits", "cores", "chips"))
    if fits is False:
        return "does not fit"
    if number(cores) is None or number(chips) is None:
        return "fits" if fits else "not known whether it fits"
    where = f"{many(cores, 'core')} of {many(chips, 'chip')}"
    return f"fits on {where}" if fits else f"would take {where}; not known whether it fits"


def many(value: object, noun: str) -> str:
    """A number of things, in the right grammatical number."""
    return f"{text.count(value)} {noun}{'' if number(value) == 1 else 's'}"


def without_learning(bills: EnergyRecord) -> str:
    """Why there are no joules of learning, if there are none at all."""
    learning = [bill for bill in bills.chips if bill.use == "learning"]
    if not learning or any(bill.total for bill in learning):
        return ""
    return f"<p>No joules of learning: {escape(learning[0].reason or 'not estimated')}.</p>"


def chips_table(bills: EnergyRecord) -> str:
    """Every chip, also those without a number, with the reason; learning if any chip has it."""
    header = [
        "chip",
        "use",
        "joules",
        "low",
        "high",
        "drawn around",
        "seconds",
        "what stands in the way",
    ]
    rows = []
    learned = any(bill.total for bill in bills.chips if bill.use == "learning")
    for bill in (bill for bill in bills.chips if learned or bill.use == "inference"):
        total = bill.total
        numbers = [total.joules, total.low, total.high] if total else [None] * 3
        seconds = number(bill.facts.get("seconds"))
        told = bill.reason or ("" if bill.facts.get("fits") else place(bill))
        rows.append(
            [
                text.text_cell(bill.title),
                text.text_cell(bill.use),
                *((n, text.DASH if n is None else text.quantity(n, "J")) for n in numbers),
                text.text_cell(bill.boundary),
                (seconds, text.DASH if seconds is None else text.quantity(seconds, "s")),
                (told, text.Html(f'<span class="told">{escape(told)}</span>')),
            ]
        )
    return text.table("chips", header, rows)
