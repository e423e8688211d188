"""The public measurement of a dataset, and rounds that answer from it at no cost.

- `measurement`: the mechanism of a round in which nobody has a share: it measures residuals once.
- `family`: which marginals an operator may ask to have measured.
- `released`: what a later round knows of a measurement: which it is, its noise, and its numbers.
- `mechanism`, `plan`: the mechanism of the later rounds.
- `answering`: answers from released numbers alone.
"""
