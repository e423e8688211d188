"""What counting and noise take on one ordinary core, and how much memory: measured once, good to a factor of 3."""

from __future__ import annotations

from equipoise_server.mechanisms.answer_noise import Law
from equipoise_server.mechanisms.interface import Setting
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

START_SECONDS = 0.01
CELL_SECONDS = 2e-8  # of summing the histogram down to tables, for each cell of the universe
STATEMENT_SECONDS = 5e-6
QUERY_SECONDS = 3e-7  # of writing one answer down
DIGIT_SECONDS = 1.2e-7  # of one discrete Laplace number, for each of its digits
GAUSSIAN_SECONDS = 1e-6  # of one discrete Gaussian number
PROCESS_BYTES = 200 * 2**20
CELL_BYTES = 24
QUERY_BYTES = 320


def counting_seconds(setting: Setting) -> float:
    """All declared statements counted on the data once, and their answers written down."""
    asked = STATEMENT_SECONDS * setting.statements + QUERY_SECONDS * setting.queries
    return START_SECONDS + CELL_SECONDS * setting.universe_size + asked


def drawing_seconds(law: Law, count: int) -> float:
    """`count` numbers of integer noise."""
    return count * (DIGIT_SECONDS * law.digits if isinstance(law, DiscreteLaplace) else GAUSSIAN_SECONDS)


def counting_bytes(setting: Setting) -> int:
    """The peak while counting: the histogram and its sums, the queries and their answers."""
    return PROCESS_BYTES + CELL_BYTES * setting.universe_size + QUERY_BYTES * setting.queries
