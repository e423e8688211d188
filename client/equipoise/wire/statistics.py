"""Statistics to messages and back: numbers that are no linear queries."""

from __future__ import annotations

from equipoise.errors import InvalidArgument
from equipoise.queries.statements import CappedSum, CountDistinct, Quantile, Statistic, Variance
from equipoise.v1 import types_pb2
from equipoise.wire.fields import checked_attributes, checked_number, checked_text, checked_texts


def write_statistic(statistic: Statistic, target: types_pb2.Statistic, path: str) -> None:
    """Fills a message. Raises `InvalidArgument` naming what is below `path`."""
    match statistic:
        case Quantile(attribute, level, window):
            target.quantile.attribute = checked_text(attribute, path, ".quantile.attribute")
            target.quantile.level = checked_number(level, path, ".quantile.level")
            target.quantile.window = checked_number(window, path, ".quantile.window")
        case Variance(attribute):
            target.variance.attribute = checked_text(attribute, path, ".variance.attribute")
        case CountDistinct(attributes):
            target.count_distinct.attributes.extend(checked_texts(attributes, path, ".count_distinct.attributes"))
        case CappedSum(attribute, cap):
            target.capped_sum.attribute = checked_text(attribute, path, ".capped_sum.attribute")
            target.capped_sum.cap = checked_number(cap, path, ".capped_sum.cap")


def read_statistic(message: types_pb2.Statistic, path: str) -> Statistic:
    """Reads a Statistic message. Raises `InvalidArgument` naming what is below `path`.

    Args:
        message: the message.
        path: its place, which messages name.
    """
    match message.WhichOneof("statistic"):
        case "quantile":
            quantile = message.quantile
            return Quantile(
                checked_text(quantile.attribute, path, ".quantile.attribute"),
                checked_number(quantile.level, path, ".quantile.level"),
                checked_number(quantile.window, path, ".quantile.window"),
            )
        case "variance":
            return Variance(checked_text(message.variance.attribute, path, ".variance.attribute"))
        case "count_distinct":
            attributes = message.count_distinct.attributes
            return CountDistinct(checked_attributes(attributes, f"{path}.count_distinct.attributes"))
        case "capped_sum":
            return CappedSum(
                checked_text(message.capped_sum.attribute, path, ".capped_sum.attribute"),
                checked_number(message.capped_sum.cap, path, ".capped_sum.cap"),
            )
        case _:
            raise InvalidArgument(path, "holds no statistic")
