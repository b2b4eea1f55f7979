"""A spike code: that of firing rates, with more steps."""

from __future__ import annotations

from dataclasses import replace

from neuro_eqprop.spiking.codes import Code

SLOW = replace(Code.RATE, name="slow", summary="rate, with more steps", steps=256)
