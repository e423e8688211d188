"""Analysts' private multiplicative weights (HRU Algorithm 5, corrected), over any finite universe.

A session is divided into *epochs*, each with its own hypothesis. Every statement is tested against a public
threshold. It is answered from the hypothesis, or with fresh noise where the hypothesis errs by more. The session
learns from the fresh answers only at the end of the epoch, from all at once and a little from each. The next
hypothesis is a number of records drawn from the learnt distribution, so no hypothesis shows much of any statement.
The end of an epoch does not show much either, by the count test of `repair_places`: after *every* slot, used or
empty, the number of fresh answers plus fresh noise is compared with a target plus the epoch's own noise. The epoch
ends when the target is reached, and certainly at a hard cap.

Every random stream is named by its slot or epoch and by what was learnt so far; the stream of a slot also by its
statement (`online.streams`). The session learns only from published answers. So a session is a function of its seed
and its statements, no matter how often it was interrupted.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.fixed_point import ONE
from equipoise.records.codec import COUNT, FRACTION, INTEGER, canonical_object, codec_of, key, list_of
from equipoise_server.mechanisms.answers import (
    answers_within,
    moved_into,
    noisy_on_grid,
    standard_error_on_grid,
    uncertified,
    with_answers,
)
from equipoise_server.mechanisms.epochs.question import Question, Scale
from equipoise_server.mechanisms.noise_calibration import GAUSSIAN_NOISE, GaussianNoise, NoiseDistribution
from equipoise_server.mechanisms.online.interface import HYPOTHESIS
from equipoise_server.mechanisms.online.streams import SessionStreams
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.repair.private_weights import answer_scores
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream
from equipoise_server.randomness.weighted import draw_exponential

BLOCK = 1 << 8  # slots whose count noise is drawn together, and again after each that is answered afresh
NEAR = 3  # standard errors


@canonical_object
class EpochParameters(Parameters):
    """Public.

    `scale`: of true answers. `epochs`, at most, with `target` statements answered afresh in each, up to noise of
    `ending_epsilon`, and certainly at most `cap`. `records`: of a hypothesis. `step`: by how much a direction's
    unit of 2^-16 moves an exponent, in units of 2^-48. `threshold`: a score, in units of 2^-16 of the scale's. The
    sign of a test is `test_epsilon`-DP. `noise`: of statements answered afresh, for a sensitivity of 1. `guard`:
    the gap, in units of 2^-40, beyond which a cell is learnt from with others. `certified_half_width`: of
    answers from a hypothesis, in units of 2^-40; `noise_half_widths`: of those with noise, by how much they move.
    """

    scale: Scale = key("scale", codec_of(Scale))
    epochs: int = key("epochs", COUNT)
    target: int = key("target", COUNT)
    cap: int = key("cap", COUNT)
    ending_epsilon: Fraction = key("ending_epsilon", FRACTION)
    records: int = key("records", COUNT)
    step: int = key("step", COUNT)
    threshold: int = key("threshold", INTEGER)
    test_epsilon: Fraction = key("test_epsilon", FRACTION)
    noise: GaussianNoise = key("noise", GAUSSIAN_NOISE)
    guard: int = key("guard", COUNT)
    certified_half_width: int = key("certified_half_width", COUNT)
    noise_half_widths: tuple[int, ...] = key("noise_half_widths", list_of(COUNT))

    @property
    def test_noise(self) -> DiscreteLaplace:
        """The distribution of the noise on a score."""
        return DiscreteLaplace(self.test_epsilon / (self.scale.sensitivity << SCORE_BITS))

    @property
    def count_noise(self) -> DiscreteLaplace:
        """The distribution of the noise on counts and targets."""
        return DiscreteLaplace(self.ending_epsilon)

    def answer_noise(self, l1_sensitivity: int) -> NoiseDistribution:
        """The law of the noise on each cell of a statement whose squared moves add up to `l1_sensitivity`."""
        return self.noise.law(l1_sensitivity * self.scale.sensitivity**2)


class Epochs:
    """A session before its first slot, over a universe of `universe` elements, with `slots` slots.

    `start`: the first hypothesis, int64[universe] how often it holds each element; each once where none is given.
    """

    def __init__(
        self,
        parameters: EpochParameters,
        universe: int,
        slots: int,
        seed: bytes,
        start: NDArray[np.int64] | None = None,
    ) -> None:
        self._parameters, self._slots, self._streams = parameters, slots, SessionStreams(seed)
        self._next, self._epoch, self._afresh = 0, 1, 0  # afresh: of this epoch
        self._exponents = np.zeros(universe, dtype=np.int64)
        self._learnt = np.zeros(universe, dtype=np.int64)
        self._multiset = np.ones(universe, dtype=np.int64) if start is None else start
        self._target = self._drawn_target()
        self._block, self._block_noise = (-1, b""), np.zeros(0, dtype=np.int64)

    @property
    def used_up(self) -> bool:
        """Whether all epochs have ended: from here on everything is answered from the last hypothesis, untested."""
        return self._epoch > self._parameters.epochs

    def answer(self, slot: int, question: Question, encoded: bytes = b"") -> Answers:
        """The answer in this slot; those between it and the last one are passed as empty. Slots ascend.

        `encoded`: the bytes of what is asked (`Offer`), to which the noise is bound.
        """
        if not self._next <= slot < self._slots:
            raise ValueError(f"slot {slot} is over, or is not one of the session's {self._slots:,} slots")
        self.pass_to(slot)
        self._streams.ask(slot, encoded)
        expected = question.multiset_answers(self._multiset)
        answers = question.prior_answers(expected)
        if answers is None:
            answers = uncertified(expected) if self.used_up else self._tested(slot, question, expected)
        self.pass_to(slot + 1)
        return answers

    def finish(self) -> NDArray[np.int64]:
        """Passes what is left; the elements of the last hypothesis, none where it is still the uniform one."""
        self.pass_to(self._slots)
        if self._epoch == 1 or self._parameters.epochs == 1:
            return np.zeros(0, dtype=np.int64)
        return np.repeat(np.arange(len(self._multiset)), self._multiset)

    def _tested(self, slot: int, question: Question, expected: NDArray[np.int64]) -> Answers:
        parameters, units, truth = self._parameters, self._parameters.scale.units, question.truth()
        if not self._positive(slot, int(answer_scores(truth, units, expected).max())):
            return answers_within(expected, HYPOTHESIS, parameters.certified_half_width)
        law, half_width = (
            parameters.answer_noise(question.l1_sensitivity),
            parameters.noise_half_widths[question.l1_sensitivity - 1],
        )
        published = noisy_on_grid(truth + self._answer_noise(slot, law, len(truth)), units)
        self._afresh += 1
        self._streams.learn()
        self._learnt += question.direction(pulls(np.clip(published, 0, ONE) - expected, parameters.guard))
        error = standard_error_on_grid(law.variance, units)
        told = answers_within(published, parameters.noise.method, half_width, error)
        return told if parameters.records else unless_refuted(told, expected)

    def pass_to(self, stop: int) -> None:
        """Tests the count after every slot before `stop` that was not passed yet."""
        while self._next < stop and not self.used_up:
            block, start = divmod(self._next, BLOCK)
            noise = self._count_noise(block)[start : start + stop - self._next]
            ends = self._afresh + noise >= self._target
            if self._afresh >= self._parameters.cap:
                ends[0] = True
            if ends.any():
                self._next += int(np.argmax(ends)) + 1
                self._end_epoch()
            else:
                self._next += len(noise)
        self._next = max(self._next, stop)

    def _end_epoch(self) -> None:
        self._epoch, self._afresh = self._epoch + 1, 0
        if self.used_up:
            return
        self._exponents += self._parameters.step * self._learnt
        self._learnt[:] = 0
        self._multiset = np.bincount(self._drawn_records(), minlength=len(self._multiset)).astype(np.int64)
        self._target = self._drawn_target()

    def _positive(self, slot: int, score: int) -> bool:
        noise = self._parameters.test_noise.draw(1, self._asked_stream("test", slot))
        return score + int(noise[0]) >= self._parameters.threshold

    def _answer_noise(self, slot: int, law: NoiseDistribution, cells: int) -> NDArray[np.int64]:
        return law.draw(cells, self._asked_stream("answer", slot))

    def _drawn_records(self) -> NDArray[np.int64]:
        stream = self._stream("records", self._epoch)
        return draw_exponential(self._exponents, self._parameters.records, stream)

    def _drawn_target(self) -> int:
        noise = self._parameters.count_noise.draw(1, self._stream("target", self._epoch))
        return self._parameters.target + int(noise[0])

    def _count_noise(self, block: int) -> NDArray[np.int64]:
        drawn = block, self._streams.history
        if drawn != self._block:
            self._block = drawn
            self._block_noise = self._parameters.count_noise.draw(BLOCK, self._stream("counts", block))
        return self._block_noise

    def _stream(self, purpose: str, number: int) -> KeyedStream:
        return self._streams.derive(f"epochs/{purpose}", str(number))

    def _asked_stream(self, purpose: str, number: int) -> KeyedStream:
        return self._streams.derive_asked(f"epochs/{purpose}", str(number))


def unless_refuted(told: Answers, expected: NDArray[np.int64]) -> Answers:
    """Answer as a fixed hypothesis does where the measurement does not refute it: within `NEAR` standard errors.

    A hypothesis that nothing is learnt to is a good one, and most of its positives are false alarms. The noise of
    the few fresh answers is far larger than what such a hypothesis errs by. Post-processing: intervals stay.

    Args:
        told: measured answers with intervals, k of them.
        expected: int64[k], what the hypothesis answers, in units of 2^-40.
    """
    near = (np.abs(expected - told.values) <= NEAR * told.standard_errors) & (expected >= told.lows)
    near &= expected <= told.highs
    return with_answers(told, near, moved_into(told, expected, AnswerMethod.FITTED)[near])


def pulls(gaps: NDArray[np.int64], guard: int) -> NDArray[np.int64]:
    """In which cells the hypothesis shall grow (1) or shrink (-1), all the same way; int64[cells].

    `gaps`: published answers less held ones. The cells beyond the guard on the side where they exceed it by more
    in all; the largest gap alone where none does. Cells of a statement exclude each other, so the direction is a
    query, or the negative of one.

    Args:
        gaps: int64[cells], published answers less those of the hypothesis, in units of 2^-40.
        guard: how far the two may be apart without a step, in the same units.
    """
    beyond = np.abs(gaps) - guard
    sides = [np.where((beyond > 0) & (np.sign(gaps) == side), beyond, 0) for side in (1, -1)]
    sums = [int(side.sum()) for side in sides]
    if not any(sums):
        alone = np.zeros_like(gaps)
        worst = int(np.argmax(beyond))
        alone[worst] = np.sign(gaps[worst])
        return alone
    return (sides[0] > 0).astype(np.int64) if sums[0] >= sums[1] else -(sides[1] > 0).astype(np.int64)
