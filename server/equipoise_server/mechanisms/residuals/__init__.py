"""Residual measurement: every marginal of a family from one unbiased measurement without repetition.

A component, not a mechanism: it plans nothing by itself and promises nothing. The interface, module by module:

- What is public of it is in `equipoise.residuals`: the family, the noise (a `canonical_object`, to be put into a
  plan), and the variance of every query.
- `allocation`: `least_summed(family, rho, weights)` and `least_largest(family, rho, scales)` give an `Allocation`
  with the `noise`, a `ResidualNoise`: one integer for each residual. It costs at most `rho` when one record is
  replaced (`ResidualNoise.rho()`, which is `accounting.residuals_rho`). It is a `canonical_object`, to be put into
  a plan.
- `estimates`: `estimates_of(workload, measured)`: every query's count and variance, the same bits on every machine.
- `measurement`: `measure(data, noise, seed, label)` counts and draws, and gives a `Measured`. Its `table(axes)` is
  the unbiased marginal of any set of the family as `ExactTable`: int64 numerators over one denominator, `.counts()`
  as float64. Its `product(axes, factors)` counts one box or weighted sum as a `Fraction`.

All tables agree with one another and with the known number of records exactly; none is cut at zero.
"""
