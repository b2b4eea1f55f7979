"""The conformance suite, which compares a backend with the reference spike by spike."""

from neuro_eqprop.simulators.testing.cases import CASES as CASES
from neuro_eqprop.simulators.testing.check import Report as Report
from neuro_eqprop.simulators.testing.check import check_backend as check_backend
from neuro_eqprop.simulators.testing.check import check_case as check_case
from neuro_eqprop.simulators.testing.random_networks import draw_case as draw_case
from neuro_eqprop.simulators.testing.random_networks import draw_cases as draw_cases
