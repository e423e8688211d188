"""Statistics that follow from answers: means, ratios, shares, variances, correlations, quantiles, with intervals.

The intervals of all answers of a round hold together. So does everything that is computed here: a result's interval
holds all that the statistic can be while each answer's truth lies within its own interval. Nothing is charged and
nothing is asked for it. Where a bin stands for its middle, intervals cover what values within the bin can be, too.
"""

from equipoise.derived.bounded import Bounded, answers_to, difference, ratio, share
from equipoise.derived.consistent import consistent
from equipoise.derived.counted_values import correlation, mean_of_counts, quantile, variance
from equipoise.derived.sums import mean, total

__all__ = [
    "Bounded",
    "answers_to",
    "consistent",
    "correlation",
    "difference",
    "mean",
    "mean_of_counts",
    "quantile",
    "ratio",
    "share",
    "total",
    "variance",
]
