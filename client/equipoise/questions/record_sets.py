"""The records for which conditions are true: each category is decided by all values that it may hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise.questions.attribute_values import FALSE, NULL, TRUE, Constant, compared, regions_of, undecided
from equipoise.questions.conditions import (
    Always,
    Both,
    Compare,
    Condition,
    Either,
    IsMissing,
    IsTrue,
    Negated,
    RecordSet,
    all_of,
    any_of,
    category_set,
    none_of,
)


class RecordSets:
    """The records for which conditions are true. What was found of a condition, by its identity, is kept."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._attributes = {each.name: each for each in schema.attributes}
        self._names: dict[Condition, frozenset[str]] = {}
        self._known: dict[tuple[object, bool], RecordSet] = {}
        self._values: dict[tuple[str, frozenset[Constant]], _Values] = {}

    def of(self, condition: Condition, wanted: bool = True) -> RecordSet:
        """Returns the records for which a condition is true, or false. Raises `InvalidArgument`.

        Args:
            condition: about attributes of the schema.
            wanted: whether it is to be true.
        """
        known = self._known.get((condition, wanted))
        if known is None:
            known = self._known[condition, wanted] = self._find(condition, wanted)
        return known

    def _find(self, condition: Condition, wanted: bool) -> RecordSet:
        names = self._attributes_of(condition)
        if not names:
            return _NOWHERE.truths(condition) == [TRUE if wanted else FALSE]
        if len(names) == 1:
            return self._of_one_attribute(condition, wanted, next(iter(names)))
        match condition:
            case Negated(part):
                return self.of(part, not wanted)
            case IsTrue(part):
                truth = self.of(part)
                return truth if wanted else none_of(truth)
            case Both(parts):
                sets = self._by_attribute(parts, Both, wanted)
                return all_of(sets) if wanted else any_of(sets)
            case Either(parts):
                sets = self._by_attribute(parts, Either, wanted)
                return any_of(sets) if wanted else all_of(sets)
        raise AssertionError(f"{condition} is about several attributes")

    def _by_attribute(
        self, parts: tuple[Condition, ...], kind: type[Both] | type[Either], wanted: bool
    ) -> tuple[RecordSet, ...]:
        """The records of each part. Those about one attribute are one: together they may fall on edges."""
        single: dict[str, list[Condition]] = {}
        others: list[Condition] = []
        for part in parts:
            names = self._attributes_of(part)
            if len(names) == 1:
                single.setdefault(next(iter(names)), []).append(part)
            else:
                others.append(part)
        sets = [
            self.of(each[0], wanted) if len(each) == 1 else self._together(tuple(each), kind, wanted, name)
            for name, each in single.items()
        ]
        return (*sets, *(self.of(part, wanted) for part in others))

    def _together(
        self, parts: tuple[Condition, ...], kind: type[Both] | type[Either], wanted: bool, name: str
    ) -> RecordSet:
        key = (kind, parts), wanted
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._of_one_attribute(kind(parts), wanted, name)
        return known

    def _of_one_attribute(self, condition: Condition, wanted: bool, name: str) -> RecordSet:
        """Decides each category by every value that may be in it."""
        if name not in self._attributes:
            self.schema.attribute(name)  # which says that there is none
        attribute, constants = self._attributes[name], _constants(condition)
        key = name, frozenset(constants)
        values = self._values.get(key)
        if values is None:
            held = [(value, place) for place, each in regions_of(attribute, constants) for value in each]
            values = _Values(attribute, tuple(value for value, _ in held), tuple(place for _, place in held))
            self._values[key] = values
        possible = dict.fromkeys(values.places, 0)
        for place, truth in zip(values.places, values.truths(condition), strict=True):
            possible[place] |= truth
        goal, chosen = TRUE if wanted else FALSE, []
        for place, truths in possible.items():
            if truths == goal:
                chosen.append(place)
            elif truths & goal:
                raise undecided(attribute, place, constants)
        return category_set(attribute, tuple(chosen))

    def _attributes_of(self, condition: Condition) -> frozenset[str]:
        known = self._names.get(condition)
        if known is None:
            match condition:
                case Compare(name, _, _) | IsMissing(name):
                    known = frozenset((name,))
                case Negated(part) | IsTrue(part):
                    known = self._attributes_of(part)
                case Both(parts) | Either(parts):
                    known = frozenset().union(*map(self._attributes_of, parts))
                case _:
                    known = frozenset()
            self._names[condition] = known
        return known


@dataclass(frozen=True)
class _Values:
    """Values of every sort that categories of an attribute may hold, and the category of each.

    `compared`: what each value's comparison may be, of each operator and constant that they were compared with.
    """

    attribute: Attribute
    values: tuple[object, ...]
    places: tuple[int, ...]
    compared: dict[tuple[str, Constant], list[int]] = field(default_factory=dict)

    def truths(self, condition: Condition) -> list[int]:
        """Which of TRUE, FALSE and NULL the condition may be for each value, as a sum of these."""
        match condition:
            case Compare(_, operator, constant):
                known = self.compared.get((operator, constant))
                if known is None:
                    known = [compared(self.attribute, value, operator, constant) for value in self.values]
                    self.compared[operator, constant] = known
                return known
            case IsMissing():
                return [TRUE if value is None else FALSE for value in self.values]
            case Always(truth):
                return [NULL if truth is None else TRUE if truth else FALSE] * len(self.values)
            case Negated(part):
                return [_NOT[each] for each in self.truths(part)]
            case IsTrue(part):
                inner = self.truths(part)
                return [(each & TRUE) | (FALSE if each & (FALSE | NULL) else 0) for each in inner]
            case Both(parts) | Either(parts):
                table = _AND if isinstance(condition, Both) else _OR
                truths = self.truths(parts[0])
                for part in parts[1:]:
                    truths = [table[one][other] for one, other in zip(truths, self.truths(part), strict=True)]
                return truths
        raise InvalidArgument("condition", f"{condition!r} is none")


def _not(possible: int) -> int:
    return (possible & NULL) | (FALSE if possible & TRUE else 0) | (TRUE if possible & FALSE else 0)


def _and(one: int, other: int) -> int:
    """AND of what two parts may be: false if one is, else neither if one is neither, else true."""
    false = (one | other) & FALSE
    null = (one & NULL and other & (TRUE | NULL)) or (other & NULL and one & (TRUE | NULL))
    return false | (NULL if null else 0) | (one & other & TRUE)


_SUMS = range((TRUE | FALSE | NULL) + 1)
_NOT = [_not(each) for each in _SUMS]
_AND = [[_and(one, other) for other in _SUMS] for one in _SUMS]
_OR = [[_not(_and(_not(one), _not(other))) for other in _SUMS] for one in _SUMS]
_NOWHERE = _Values(Attribute("none", ("none",)), (None,), (0,))


def _constants(condition: Condition) -> tuple[Constant, ...]:
    match condition:
        case Compare(_, _, constant):
            return (constant,)
        case Negated(part) | IsTrue(part):
            return _constants(part)
        case Both(parts) | Either(parts):
            return tuple(each for part in parts for each in _constants(part))
    return ()
