"""What to say of SQL that cannot be asked: by the argument of a node, by its class, and what its sign is."""

from __future__ import annotations

from sqlglot import exp

INSTEAD: dict[str, str] = {
    "joins": "a question is about one table; ask the custodian to register a view that joins them",
    "laterals": "a question is about one table; ask the custodian to register a view",
    "with_": "WITH cannot be answered; put the conditions into one SELECT",
    "windows": "windows order single records, which are never shown; GROUP BY an attribute instead",
    "qualify": "windows order single records, which are never shown; GROUP BY an attribute instead",
    "distinct": "DISTINCT is not needed: GROUP BY gives each combination once",
    "offset": "OFFSET cannot be answered; leave it out: all rows of an answer cost the same",
    "sample": "a sample of the records cannot be asked; leave it out",
    "into": "an answer cannot be written to a table; use --out",
    "locks": "nothing can be locked",
    "all": "ALL cannot be answered; GROUP BY takes the names of attributes",
    "db": "the name of a dataset has one part",
    "catalog": "the name of a dataset has one part",
}
_GROUPINGS = "asks several groupings at once; ask each by itself, parted by `;`"
_LABELS = "nothing is computed of labels; name the attribute itself, or write CASE WHEN"
_PARTS = (
    "no part of a date is computed; write CASE WHEN with dates, or ask the custodian to register a column of it"
)
CLASSES: dict[str, str] = {
    "Window": INSTEAD["windows"],
    "Subquery": "a subquery cannot be answered; write its condition into WHERE",
    "Select": "a subquery cannot be answered; write its condition into WHERE",
    "Union": "UNION cannot be answered; part the questions by `;`",
    "Intersect": "INTERSECT cannot be answered; part the questions by `;`",
    "Except": "EXCEPT cannot be answered; part the questions by `;`",
    "Distinct": "DISTINCT counts are CountDistinct statements, which sessions of low_sensitivity answer",
    "Star": "single records are never shown; count them: SELECT COUNT(*)",
    "Literal": "a text is none",
    "Tuple": "several values in parentheses cannot be answered; write each by itself",
    "Column": "an attribute cannot stand here; write a number or a text",
    "ILike": "ILIKE cannot be answered; list the labels with IN",
    "NullSafeEQ": "IS NOT DISTINCT FROM cannot be answered; write = or IS NULL",
    "NullSafeNEQ": "IS DISTINCT FROM cannot be answered; write <> or IS NOT NULL",
    "Min": "the least value is one person's; GROUP BY the attribute, and see which of its bins count any",
    "Max": "the largest value is one person's; GROUP BY the attribute, and see which of its bins count any",
    "Variance": "the variance of a sample cannot be answered; VAR_POP is that of the records",
    "Stddev": "the deviation of a sample cannot be answered; STDDEV_POP is that of the records",
    "StddevSamp": "the deviation of a sample cannot be answered; STDDEV_POP is that of the records",
    "PercentileDisc": "a quantile that is some record's value is never shown; QUANTILE_CONT lies between records",
    "Quantile": "a quantile that is some record's value is never shown; QUANTILE_CONT lies between records",
    "ApproxQuantile": "this quantile cannot be answered; QUANTILE_CONT(x, q) is",
    "Corr": "CORR cannot be answered; equipoise.derived.correlation computes it of a marginal over both attributes",
    "Mode": "MODE cannot be answered; GROUP BY the attribute, ORDER BY COUNT(*) DESC LIMIT 1",
    "Rollup": f"ROLLUP {_GROUPINGS}",
    "Cube": f"CUBE {_GROUPINGS}",
    "GroupingSets": f"GROUPING SETS {_GROUPINGS}",
    "Upper": _LABELS,
    "Lower": _LABELS,
    "Coalesce": "COALESCE cannot be answered; write CASE WHEN x IS NULL THEN ..",
    "If": "IF cannot be answered; write CASE WHEN .. THEN .. ELSE .. END",
    "Extract": _PARTS,
    "DateTrunc": _PARTS,
    "TimestampTrunc": _PARTS,
    "Year": _PARTS,
    "Month": _PARTS,
    "Exists": "a subquery cannot be answered; write its condition into WHERE",
    "Any": "ANY cannot be answered; list the values with IN",
    "RegexpLike": "regular expressions cannot be answered; write LIKE, or list the labels with IN",
    "RegexpFullMatch": "regular expressions cannot be answered; write LIKE, or list the labels with IN",
    "Fetch": "FETCH cannot be answered; write LIMIT",
    "Anonymous": "this function is not known here; docs/sql.md lists those that are",
}


COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
SIGNS: dict[type[exp.Expr], str] = COMPARISONS | {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Neg: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.Paren: "what is in parentheses",
}
