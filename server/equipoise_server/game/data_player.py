"""The data player: multiplicative weights over a list of records, drawn from exactly and without touching all.

HRU Algorithm 1 (MW; Freund & Schapire 1997). In sampled play only a few queries are added to the potential in a
round. They are kept aside, and records are proposed from a table of some rounds ago: a draw then costs what the
proposed records cost, however long the list is. Every few rounds, by a rule on public numbers, all that was kept
aside is added at once and the table made anew.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.combination import Combination
from equipoise.queries.weighed_queries import WeighedQueries
from equipoise_server.game.parameters import EXPONENT_BITS
from equipoise_server.randomness.exponential import exponentials
from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.randomness.weighted import Proposal

# What things cost, in units of what a new table costs for one record of the universe.
PROPOSAL_COST = 64.0
VALUE_COST = 0.25  # of one kept action at one proposed record


class MultiplicativeWeights:
    """MW over the records of a list X: `start(x) exp(eta * (sum of gains of x so far))` weighs x.

    Gains are integers, in whatever unit; the log-weights are `start + (potential >> drop_bits) * step` in units of
    2^-48, so that eta is `step 2^-48` for each `2^drop_bits` of gains. `start` is 0 for the uniform distribution.
    Gains come for the whole list (`gain`) or as a sum of a few queries (`gain_queries`), which is what may be
    kept aside.

    Regret. Let the gains g_t of round t differ by at most 1 between records, p_t be the law that `draw` draws
    from in round t, and p any distribution on the records. Then, whatever the gains, even if they depend on all
    that was drawn before round t or on p_t,

        sum_t <p_t, g_t> >= sum_t <p, g_t> - KL(p || p_1) / eta - eta T / 8,

    with p_1 the law before any gain; KL <= log |X| where it is uniform.

    Proof: log sum_x p_1(x) exp(eta sum_t g_t(x)) is at least eta sum_t <p, g_t> - KL(p || p_1) (Gibbs), and
    it is the sum over t of log <p_t, exp(eta g_t)> <= eta <p_t, g_t> + eta^2 / 8 (Hoeffding's lemma). One record
    drawn from each p_t instead of p_t itself: less at most sqrt(T ln(1/beta) / 2) with probability 1 - beta, if g_t
    does not depend on the record drawn in round t (Azuma). This is HRU Theorem 2.10 with exact constants (eta / 8
    a round, where (1 + eta) and 4 log(1/beta) / sqrt(T) are printed) and the dependence that it has to exclude.
    With `drop_bits` the log-weights are rounded down by less than `step` 2^-48 nats (in all, not a round): at most
    that much of regret a round.
    """

    def __init__(
        self,
        queries: WeighedQueries,
        step: int,
        drop_bits: int = 0,
        lifetime: int = 1,
        start: NDArray[np.int64] | None = None,
    ) -> None:
        """Start before any gain.

        Args:
            queries: over the list, which is the whole universe or a support.
            step: of the log-weights, for each `2^drop_bits` of gains.
            drop_bits: of the gains, which are rounded off.
            lifetime: rounds of `gain_queries` for which a table of proposals is used.
            start: the first log-weights, int64[|X|] in units of 2^-48; None: uniform.
        """
        self._start = start
        self._over_list = queries
        self._step = step
        self._drop_bits = drop_bits
        self._lifetime = lifetime
        self._potential = np.zeros(queries.size, dtype=np.int64)
        self._pending = Combination(queries)
        self._queries: list[NDArray[np.int64]] = []
        self._coefficients: list[NDArray[np.int64]] = []
        self._growth = 0  # the most that what is kept aside can add to any record's potential
        self._proposal: Proposal | None = None

    def exponents(self, potential: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return all log-weights given the sums of gains, int64[|X|] both, in units of 2^-48."""
        gained = self._gained(potential)
        return gained if self._start is None else gained + self._start

    def _gained(self, potential: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what sums of gains add to log-weights, elementwise. Never decreasing."""
        return (potential >> self._drop_bits) * self._step

    def gain(self, gains: NDArray[np.int64]) -> None:
        """Add a round's gains, int64[|X|]. This call discards the table of proposals."""
        self._proposal = None
        self._potential += gains

    def gain_queries(self, queries: NDArray[np.int64], coefficients: NDArray[np.int64]) -> None:
        """Add a round's gains, given as the sum of a few queries with coefficients, int64[j] each."""
        self._queries.append(queries)
        self._coefficients.append(coefficients)
        if self._proposal is None:
            return
        self._pending.add(queries, coefficients)
        self._growth += int(coefficients[coefficients > 0].sum())
        if len(self._queries) >= self._lifetime:
            self._proposal = None

    def draw(self, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        """`count` independent records, int64[count] places, x with probability exactly proportional to its weight.

        Proof that the law is the one of a table made anew: `Proposal.draw` needs the exponents as they are now at
        the proposed records, and a bound on how far any exponent has grown since the table was made. How old
        the table is decides how many proposals are refused, nothing else.
        """
        proposal, growth = self.proposal()
        return proposal.draw(count, self.exponents_at, growth, stream)

    def proposal(self) -> tuple[Proposal, int]:
        """Return the table of proposals, and a bound on the growth of exponents since, in units of 2^-48.

        The bound is the sum of the positive coefficients kept aside, as 0 <= q(x) <= 1; a drawn complement enters
        as -q and only lowers weights.
        """
        if self._proposal is None:
            self._add_pending()
            if self._start is None:
                self._proposal = Proposal.above(self._potential, self._gained)
            else:
                self._proposal = Proposal.above(self.exponents(self._potential))
        # Rounded up, where the exponents are rounded down.
        return self._proposal, -(-self._growth >> self._drop_bits) * self._step

    def exponents_at(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the present log-weights of some records, in units of 2^-48: exact, as gains are integers."""
        if self._proposal is None:
            self._add_pending()
        gained = self._gained(self._potential[places] + self._pending.at(places))
        return gained if self._start is None else gained + self._start[places]

    def _add_pending(self) -> None:
        if self._queries:
            queries, coefficients = np.concatenate(self._queries), np.concatenate(self._coefficients)
            self._potential += self._over_list.transpose_sparse(queries, coefficients)
        self._queries, self._coefficients, self._growth = [], [], 0
        self._pending.clear()


def table_lifetime(size: int, batch: int, draws: int, step: int) -> int:
    """For how many rounds of sampled play a table of proposals is used: the number that costs least a round.

    All arguments are public. A round of age a makes at most `batch exp(draws step a)` proposals or so, whatever
    the actions are: of an action that is counted in the bound on growth a record lacks 1 - q(x), of a
    complement q(x), so that no weight falls behind by more than `draws a` steps. At each proposal it reads
    `draws a` actions. As that cost grows with a, the mean cost of a round, with the new table's spread over all
    of them, falls until the next round costs more than the mean. Plain products and sums of doubles, so that
    every machine makes new tables in the same rounds (which decides what is read from the stream, though not
    the law of what is drawn).

    Args:
        size: records of the list.
        batch: records drawn in each round.
        draws: actions added in each round.
        step: of one action, in nats 2^-48.
    """
    slower = float(exponentials(np.array([min(draws * step, 64 << EXPONENT_BITS)]))[0])
    proposals, rounds, total = float(batch), 0, float(size)
    while True:
        cost = proposals * (PROPOSAL_COST + VALUE_COST * (draws * rounds))
        if rounds and cost * rounds >= total:
            return rounds
        rounds, total, proposals = rounds + 1, total + cost, proposals * slower
