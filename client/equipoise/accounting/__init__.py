"""Every privacy cost as a pure function with its theorem. No conversion to (epsilon, delta) happens here.

Costs are zero-concentrated differential privacy `rho` (Bun & Steinke 2016, Definition 1.1) unless said
otherwise; rhos of successive mechanisms add (Lemma 1.7). A mechanism whose log-likelihood ratios between
neighbours have range `r` (largest minus smallest) satisfies `r^2 / 8`-zCDP (Cesar & Rogers 2021, for
Durfee & Rogers' bounded range); range `r` of an exponent gives range `r` of the drawn distribution.

Results in floating point are pushed upwards by `OUTWARD`, far more than the arithmetic here can err, and each
charge is rounded up once to whole units (`Cost`).

>>> from fractions import Fraction
>>> detection = sparse_vector_rho(Fraction(1, 10), positives=4)
>>> answers = gaussian_rho(Fraction(2), Fraction(100), answers=4)
>>> Cost(rho=rounded_up(detection + answers, RHO_UNIT))
Cost(rho=60000000000, epsilon=0, delta=0, divergence=0)
"""

from __future__ import annotations

from equipoise.accounting.cost import DELTA_UNIT, OUTWARD, RHO_UNIT, Cost, rounded_up
from equipoise.accounting.events import (
    ApproximateDpEvent,
    Mixture,
    PrivacyEvent,
    PureDpEvent,
    RenyiEvent,
    ThresholdTests,
    ZcdpEvent,
    charge_at,
    charge_of,
)
from equipoise.accounting.events_json import events_from_json, events_to_json
from equipoise.accounting.game import (
    COEFFICIENT_BITS,
    DRAW_BITS,
    POTENTIAL_BITS,
    BinomialMixture,
    draw_slack,
    mixed_play_analyst_rho,
    mixed_play_data_rho,
    rounding_slack,
    sampled_play_analyst_mixture,
    sampled_play_data_rho,
)
from equipoise.accounting.pooled import tables_rho, votes_l1_sensitivity
from equipoise.accounting.privacy_filter import Offer, PrivacyFilter, in_rho
from equipoise.accounting.renyi import ORDERS, RenyiCurve, mixture_curve, mixture_divergence, zcdp_curve
from equipoise.accounting.repair import (
    analyst_tests_rho,
    exponential_mechanism_rho,
    gaussian_rho,
    laplace_rho,
    private_weights_rho,
    pure_rho,
    repair_places_delta,
    repair_places_rho,
    sparse_vector_rho,
)
from equipoise.accounting.residuals import Residual, residuals_rho
from equipoise.accounting.threshold_tests import threshold_tests_curve, threshold_tests_divergence

__all__ = [
    "COEFFICIENT_BITS",
    "DELTA_UNIT",
    "DRAW_BITS",
    "ORDERS",
    "OUTWARD",
    "POTENTIAL_BITS",
    "RHO_UNIT",
    "ApproximateDpEvent",
    "BinomialMixture",
    "Cost",
    "Mixture",
    "Offer",
    "PrivacyEvent",
    "PrivacyFilter",
    "PureDpEvent",
    "RenyiCurve",
    "RenyiEvent",
    "Residual",
    "ThresholdTests",
    "ZcdpEvent",
    "analyst_tests_rho",
    "charge_at",
    "charge_of",
    "draw_slack",
    "events_from_json",
    "events_to_json",
    "exponential_mechanism_rho",
    "gaussian_rho",
    "in_rho",
    "laplace_rho",
    "mixed_play_analyst_rho",
    "mixed_play_data_rho",
    "mixture_curve",
    "mixture_divergence",
    "private_weights_rho",
    "pure_rho",
    "repair_places_delta",
    "repair_places_rho",
    "residuals_rho",
    "rounded_up",
    "rounding_slack",
    "sampled_play_analyst_mixture",
    "sampled_play_data_rho",
    "sparse_vector_rho",
    "tables_rho",
    "threshold_tests_curve",
    "threshold_tests_divergence",
    "votes_l1_sensitivity",
    "zcdp_curve",
]
