"""What is public of a residual measurement: its family, its noise, and how much noise every count has by it.

The custodian's side plans, measures and answers by these (`equipoise_server.mechanisms.residuals`). An analyst and
an auditor can compute from them what a measurement tells, before anything is asked.

- `family`: the marginals that are measured. `noise`: the parameter of each residual.
- `axis_bases` and `haar`: how axes in no order, and ordered ones, are taken apart and put together.
- `product_terms`, `variances` and `query_variances`: the variance of every query, the same bits on every machine.
- `reach`: how wide intervals are that hold for whatever is asked of one measurement.
"""
