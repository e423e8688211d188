"""Signed sums of boxes: adding, intersecting and merging them.

A box is a product of conditions on single attributes, so it is cheap to apply to a record, to a histogram and
transposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Box = tuple[tuple[int, int], ...]
"""(axis, mask) pairs by ascending axis; bit c of a mask: category c is allowed. No mask is empty or full."""
Boxes = dict[Box, int]
"""Boxes and their coefficients, none of them 0."""

EVERYTHING: Boxes = {(): 1}


def single_condition(boxes: Boxes) -> tuple[int, int] | None:
    """Returns the (axis, mask) of a condition on a single attribute, or None."""
    if len(boxes) == 1:
        ((box, coefficient),) = boxes.items()
        if len(box) == 1 and coefficient == 1:
            return box[0]
    return None


def intersection(box: Box, other: Box) -> Box | None:
    """Returns the box of the records in both; None if there are none."""
    masks = dict(box)
    for axis, mask in other:
        both = mask & masks.get(axis, mask)
        if not both:
            return None
        masks[axis] = both
    return tuple(sorted(masks.items()))


def add_boxes(one: Boxes, other: Boxes) -> Boxes:
    """Returns the sum of both, without boxes whose coefficients cancel."""
    result = dict(one)
    for box, coefficient in other.items():
        result[box] = result.get(box, 0) + coefficient
    return {box: coefficient for box, coefficient in result.items() if coefficient}


def merged(boxes: Boxes, full_masks: Sequence[int]) -> Boxes:
    """Returns the same sum in fewer boxes, where boxes that differ in one attribute only can be joined.

    Args:
        boxes: boxes and their coefficients.
        full_masks: for each axis the mask of all its categories.
    """
    shrinking = len(boxes) > 1
    while shrinking:
        before = len(boxes)
        for axis in sorted({axis for box in boxes for axis, _ in box}):
            boxes = _merged_along(axis, boxes, full_masks[axis])
        shrinking = 1 < len(boxes) < before
    return boxes


def _merged_along(axis: int, boxes: Boxes, full: int) -> Boxes:
    families: dict[Box, list[tuple[int, int]]] = {}
    for box, coefficient in boxes.items():
        rest = tuple(pair for pair in box if pair[0] != axis)
        mask = full if len(rest) == len(box) else next(pair[1] for pair in box if pair[0] == axis)
        families.setdefault(rest, []).append((mask, coefficient))
    if len(families) == len(boxes):
        return boxes
    result: Boxes = {}
    for rest, members in families.items():
        levels = _levels(members, full)
        for mask, coefficient in levels if len(levels) < len(members) else members:
            box = rest if mask == full else tuple(sorted((*rest, (axis, mask))))
            result[box] = coefficient
    return result


def _levels(members: Iterable[tuple[int, int]], full: int) -> list[tuple[int, int]]:
    """Returns the sum of coefficient times mask, as disjoint masks with one non-zero value each."""
    regions = {0: full}
    for mask, coefficient in members:
        refined: dict[int, int] = {}
        for value, region in regions.items():
            for part, new_value in ((region & mask, value + coefficient), (region & ~mask, value)):
                if part:
                    refined[new_value] = refined.get(new_value, 0) | part
        regions = refined
    return [(region, value) for value, region in sorted(regions.items()) if value]
