"""Residual measurement: every marginal of a family from one unbiased measurement without repetition.

A component, not a mechanism: it plans nothing by itself and promises nothing. The interface, module by module:

- `family`: `ResidualFamily.closed(sizes, sets, ordered=())` is all marginals of a round: the sets given and all of
  their subsets. It has `sets`, `largest` and `residuals`, and refuses what is too large or malformed
  (`InvalidArgument`).
- `allocation`: `least_summed(family, rho, weights)` and `least_largest(family, rho, scales)` give an `Allocation`
  with the `noise`, a `ResidualNoise`: one integer for each residual. It costs at most `rho` when one record is
  replaced (`ResidualNoise.rho()`, which is `accounting.residuals_rho`). It is a `canonical_object`, to be put into
  a plan.
- `variances`: `cell_variances(noise, axes)`, `product_variances(noise, axes, factors)` and
  `product_covariances(...)`: exact, from public things only.
  `largest_variance`: of any weighted sum of a table.
- `estimates`: `estimates_of(workload, measured)`: every query's count and variance, the same bits on every machine.
- `measurement`: `measure(data, noise, seed, label)` counts and draws, and gives a `Measured`. Its `table(axes)` is
  the unbiased marginal of any set of the family as `ExactTable`: int64 numerators over one denominator, `.counts()`
  as float64. Its `product(axes, factors)` counts one box or weighted sum as a `Fraction`.
- `axis_bases` and `haar`: how axes in no order, and ordered ones, are taken apart and put together.

All tables agree with one another and with the known number of records exactly; none is cut at zero.
"""
