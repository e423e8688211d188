"""Compiles a predicate to a signed sum of boxes.

Every predicate is a sum of boxes with integer coefficients: AND multiplies, NOT is 1 - p, and
OR is NOT of the AND of the NOTs (De Morgan), after conditions on the same attribute are merged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from equipoise.errors import InvalidArgument
from equipoise.queries.boxes import EVERYTHING, Boxes, add_boxes, intersection, merged, single_condition
from equipoise.queries.padding import holds_nothing
from equipoise.queries.predicates import AllOf, Among, AnyOf, Interval, Not, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import edge_text

MAX_BOXES = 256
MAX_DEPTH = 32  # a level takes up to two nested messages on the wire, and protobuf parsers stop at 100
MAX_PRODUCTS = 1 << 16  # box by box products while compiling one predicate: about a tenth of a second
MAX_PRODUCTS_IN_ALL = 1 << 24
MAX_REMEMBERED = 1 << 16  # predicates of one workload that are not compiled again where they are repeated


@dataclass
class PredicateCompiler:
    """Compiles the predicates of one workload against one schema, and counts the work that takes."""

    schema: Schema
    products_in_all: int = 0
    _products: int = 0
    _compiled: dict[int, tuple[Predicate, Boxes, int]] = field(default_factory=dict)
    _axes: dict[str, int] = field(init=False)
    _full: tuple[int, ...] = field(init=False)
    _edges: list[dict[float, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._axes = {name: axis for axis, name in enumerate(self.schema.names)}
        self._full = tuple((1 << size) - 1 for size in self.schema.sizes)
        self._edges = [{edge: i for i, edge in enumerate(each.edges)} for each in self.schema.attributes]

    def compile(self, predicate: Predicate, path: str) -> Boxes:
        """Returns the boxes of `predicate`; errors name what is below `path`. Empty: it is never true.

        The very same object, of a workload that holds it more than once, is compiled once, and its work counted
        as often as it is there: what is too complex does not depend on what is shared.
        """
        known = self._compiled.get(id(predicate))
        if known is not None:
            _, boxes, products = known
            self._count(products)
            return boxes
        self._products = 0
        boxes = self._boxes(predicate, path, 1)
        if self.schema.padded and holds_nothing(boxes, self.schema):
            # A negation: any one of its attributes tells records of nothing from others.
            axis = min((axis for box in boxes for axis, _ in box), default=0)
            boxes = merged(self._product(self._slab(axis, self._full[axis] >> 1), boxes, path), self._full)
        if len(boxes) > MAX_BOXES:
            raise _too_complex(path)
        if len(self._compiled) < MAX_REMEMBERED:
            # With the object itself, so that no other comes to its identity.
            self._compiled[id(predicate)] = predicate, boxes, self._products
        return boxes

    def slab(self, condition: Among | Interval) -> tuple[int, int] | None:
        """Returns the (axis, mask) of a condition on one attribute; None where it is always or never true.

        Raises `InvalidArgument`. Counts no work: whoever combines conditions does (`count_products`).
        """
        return single_condition(self._boxes(condition, "", 1))

    def count_products(self, products: int) -> None:
        """Counts work that was done elsewhere. Raises `InvalidArgument` where it is too much in all."""
        self._count(products)

    def axis(self, name: object, path: str) -> int:
        """Returns the axis of an attribute."""
        axis = self._axes.get(name) if isinstance(name, str) else None
        if axis is None:
            raise InvalidArgument(path, f"the schema has no attribute {name!r}")
        return axis

    def axes(self, names: Sequence[str], path: str) -> tuple[int, ...]:
        """Returns the axes of several attributes."""
        return tuple(self.axis(name, f"{path}[{i}]") for i, name in enumerate(names))

    def _boxes(self, predicate: Predicate, path: str, depth: int) -> Boxes:
        if depth > MAX_DEPTH:
            raise InvalidArgument(path, f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(predicate, Among):
            return self._among(predicate, path)
        if isinstance(predicate, Interval):
            return self._interval(predicate, path)
        if isinstance(predicate, Not):
            return self._complement(self._boxes(predicate.condition, f"{path}.condition", depth + 1))
        if isinstance(predicate, AllOf | AnyOf):
            if not isinstance(predicate.conditions, tuple | list) or not predicate.conditions:
                raise InvalidArgument(f"{path}.conditions", "must be at least one")
            parts = [
                self._boxes(condition, f"{path}.conditions[{i}]", depth + 1)
                for i, condition in enumerate(predicate.conditions)
            ]
            return self._all(parts, path) if isinstance(predicate, AllOf) else self._any(parts, path)
        raise InvalidArgument(path, "is not a predicate")

    def _among(self, predicate: Among, path: str) -> Boxes:
        axis = self.axis(predicate.attribute, f"{path}.attribute")
        if not isinstance(predicate.categories, tuple | list) or not predicate.categories:
            raise InvalidArgument(f"{path}.categories", "must be at least one")
        attribute = self.schema.attributes[axis]
        try:
            positions = {attribute.index(label) for label in predicate.categories}
            if attribute.none and attribute.size - 1 in positions:
                raise InvalidArgument(
                    f"attribute {attribute.name}", f"has records of nothing in {attribute.none!r}"
                )
        except InvalidArgument as error:
            raise InvalidArgument(f"{path}.categories", f"{error.field} {error.problem}") from None
        return self._slab(axis, _mask(positions))

    def _interval(self, predicate: Interval, path: str) -> Boxes:
        axis = self.axis(predicate.attribute, f"{path}.attribute")
        attribute = self.schema.attributes[axis]
        if not attribute.edges:
            raise InvalidArgument(f"{path}.attribute", f"{attribute.name!r} has no bins; list its categories")
        low = self._bin(axis, attribute, predicate.low, f"{path}.low")
        high = self._bin(axis, attribute, predicate.high, f"{path}.high")
        if low > high:
            raise InvalidArgument(f"{path}.high", "is below the lower end")
        return self._slab(axis, (1 << high) - (1 << low))

    def _bin(self, axis: int, attribute: Attribute, edge: float, path: str) -> int:
        """Returns the first bin at or above an edge."""
        if isinstance(edge, bool) or not isinstance(edge, int | float):
            raise InvalidArgument(path, "is not a number")
        if edge in (-math.inf, math.inf):
            return 0 if edge < 0 else attribute.bins
        position = self._edges[axis].get(edge)
        if position is None:
            edges = ", ".join(edge_text(each, attribute.dates) for each in attribute.edges[:12])
            more = ", ..." if attribute.bins >= 12 else ""
            raise InvalidArgument(path, f"is not an edge of {attribute.name}; its edges are {edges}{more}")
        return position

    def _slab(self, axis: int, mask: int) -> Boxes:
        if mask == 0:
            return {}
        return EVERYTHING if mask == self._full[axis] else {((axis, mask),): 1}

    def _complement(self, boxes: Boxes) -> Boxes:
        slab = single_condition(boxes)
        if slab is not None:
            return self._slab(slab[0], self._full[slab[0]] & ~slab[1])
        return merged(add_boxes(EVERYTHING, {box: -coefficient for box, coefficient in boxes.items()}), self._full)

    def _all(self, parts: list[Boxes], path: str) -> Boxes:
        # Short factors first: they cut the long ones down before those are multiplied out.
        product = EVERYTHING
        for part in sorted(parts, key=len):
            product = self._product(product, part, path)
        return merged(product, self._full)

    def _any(self, parts: list[Boxes], path: str) -> Boxes:
        slabs: dict[int, int] = {}
        others = []
        for part in parts:
            slab = single_condition(part)
            if slab is None:
                others.append(part)
            else:
                slabs[slab[0]] = slabs.get(slab[0], 0) | slab[1]
        others.extend(self._slab(axis, mask) for axis, mask in slabs.items())
        missed = EVERYTHING
        for part in sorted(others, key=len):
            slab = single_condition(part)
            if slab is not None:
                missed = self._product(missed, self._complement(part), path)
            else:
                overlap = self._product(missed, part, path)
                missed = add_boxes(missed, {box: -coefficient for box, coefficient in overlap.items()})
                if len(missed) > MAX_BOXES:
                    missed = merged(missed, self._full)
        return self._complement(merged(missed, self._full))

    def _product(self, one: Boxes, other: Boxes, path: str) -> Boxes:
        products = len(one) * len(other)
        self._products += products
        if self._products > MAX_PRODUCTS:
            raise _too_complex(path)
        self._count(products)
        if one is EVERYTHING:
            return other
        result: Boxes = {}
        for box, coefficient in one.items():
            for with_box, with_coefficient in other.items():
                both = intersection(box, with_box)
                if both is not None:
                    result[both] = result.get(both, 0) + coefficient * with_coefficient
        result = {box: coefficient for box, coefficient in result.items() if coefficient}
        if len(result) > MAX_BOXES:
            result = merged(result, self._full)
            if len(result) > MAX_BOXES:
                raise _too_complex(path)
        return result

    def _count(self, products: int) -> None:
        self.products_in_all += products
        if self.products_in_all > MAX_PRODUCTS_IN_ALL:
            raise InvalidArgument("statements", "are too complex together; send them in several workloads")


def _mask(positions: Iterable[int]) -> int:
    mask = 0
    for position in positions:
        mask |= 1 << position
    return mask


def _too_complex(path: str) -> InvalidArgument:
    return InvalidArgument(path, f"is too complex: more than {MAX_BOXES} boxes; split it into several statements")
