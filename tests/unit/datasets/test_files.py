"""Tables from CSV and Parquet: values as text, missing values, refusals, and hostile names."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise_server.datasets.source import source_at

EDGES = (0.0, 0.1, 10.0)
SCHEMA = Schema(
    (
        Attribute("code", ("1", "2", "01")),
        Attribute("delay", (*bin_labels(EDGES), "none"), EDGES, missing="none", clamp=True),
    )
)


def table(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def labels(path: Path, name: str, *categories: str) -> list[int]:
    """The counts of the categories of one column, with a last one for missing values."""
    schema = Schema((Attribute(name, (*categories, "none"), missing="none"),))
    return [int(count) for count in source_at(path).counts(schema).dense()]


def test_a_csv_file_becomes_a_histogram(tmp_path: Path) -> None:
    rows = "ignored,delay,code\nx,0,1\nx,0.1,1\nx,,2\nx,NA,2\nx,-7,01\nx,1e9,01\nx,0.0999,01\n"
    data = source_at(table(tmp_path / "t.csv", rows)).counts(SCHEMA)
    assert data.records == 7
    assert data.dense().reshape(SCHEMA.sizes).tolist() == [[1, 1, 0], [0, 0, 2], [2, 1, 0]]
    assert data.dense().dtype == np.int64


def test_a_parquet_file_becomes_the_same_histogram(tmp_path: Path) -> None:
    columns = {
        "delay": pa.array([0.0, 0.1, None, math.nan, -7.0, 1e9, 0.0999]),
        "code": ["1", "1", "2", "2", "01", "01", "01"],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    data = source_at(tmp_path / "t.parquet").counts(SCHEMA)
    assert data.dense().reshape(SCHEMA.sizes).tolist() == [[1, 1, 0], [0, 0, 2], [2, 1, 0]]


def test_csv_values_are_compared_as_text(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", 'a\n1\n01\n1.0\n 1\ntrue\n"1"\n2020-01-01\n')
    assert labels(path, "a", "1", "01", "1.0", " 1", "true", "2020-01-01") == [2, 1, 1, 1, 1, 1, 0]


def test_parquet_values_are_compared_as_text(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"a": pa.array([1, 2, None, 2], pa.int8()), "b": [True, False, True, True]}), tmp_path / "t.pq"
    )
    assert labels(tmp_path / "t.pq", "a", "1", "2") == [1, 2, 1]
    assert labels(tmp_path / "t.pq", "b", "true", "false") == [3, 1, 0]


def test_na_is_missing_in_csv_only(tmp_path: Path) -> None:
    assert labels(table(tmp_path / "t.csv", 'a,b\nNA,x\n,x\n"",x\nNAN,x\n'), "a", "NAN") == [1, 3]
    pq.write_table(pa.table({"a": ["NA", None, "NAN"]}), tmp_path / "t.parquet")
    assert labels(tmp_path / "t.parquet", "a", "NA", "NAN") == [1, 1, 1]


@pytest.mark.parametrize("kind", ["int64", "uint8", "float32", "double", "string", "decimal"])
def test_bins_hold_numbers_of_every_type(tmp_path: Path, kind: str) -> None:
    types = {"string": pa.string(), "decimal": pa.decimal128(30, 2)}
    values = ["1", "5", "9"] if kind == "string" else [1, 5, 9]
    pq.write_table(pa.table({"a": pa.array(values).cast(types.get(kind, kind))}), tmp_path / "t.parquet")
    edges = (1.0, 5.0, 10.0)
    schema = Schema((Attribute("a", bin_labels(edges), edges),))
    assert source_at(tmp_path / "t.parquet").counts(schema).dense().tolist() == [1, 2]


def test_what_is_no_number_is_refused_in_bins(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", "a\n1\none\ninf\n\n9\n")
    schema = Schema((Attribute("a", ("[0, 9)",), (0.0, 9.0)),))
    with pytest.raises(InvalidArgument) as caught:
        source_at(path).counts(schema)
    assert caught.value.problem == "attribute a: 1 null, 1 not a number, 2 out of range"
    dates = pa.table({"a": pa.array([1, 2], pa.date32())})
    pq.write_table(dates, tmp_path / "t.parquet")
    with pytest.raises(InvalidArgument, match="2 not numbers"):
        source_at(tmp_path / "t.parquet").counts(schema)


HOSTILE = [
    'a"; DROP TABLE map0; --',
    "a' OR 1=1",
    "c1",
    "map0.key",
    "*",
    "?",
    "$1",
    "{x}",
    "é\u4e2d",
    "a,b",
    "sum(1)",
]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_names_and_labels_are_never_sql(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f'it\'s "{{one}}"; --{suffix}'
    if suffix == ".csv":
        quoted = ",".join(json.dumps(name, ensure_ascii=False).replace('\\"', '""') for name in HOSTILE)
        table(path, f"{quoted}\n{quoted}\n")
    else:
        pq.write_table(pa.table({name: [name] for name in HOSTILE}), path)
    schema = Schema(tuple(Attribute(name, ("other", name)) for name in HOSTILE))
    histogram = source_at(path).counts(schema).dense()
    assert histogram.sum() == histogram[-1] == 1


def test_names_differ_by_case(tmp_path: Path) -> None:
    assert labels(table(tmp_path / "t.csv", "a,A\nx,y\n"), "A", "x", "y") == [0, 1, 0]
    pq.write_table(pa.table({"a": ["x"], "A": ["y"]}), tmp_path / "t.parquet")
    assert labels(tmp_path / "t.parquet", "A", "x", "y") == [0, 1, 0]
    with pytest.raises(InvalidArgument, match="no column named 'B'"):
        labels(table(tmp_path / "t.csv", "a,b\nx,y\n"), "B", "x")


def test_names_inside_nested_columns_do_not_count(tmp_path: Path) -> None:
    nested = pa.array([{"a": "inner", "b": ["q"]}])
    pq.write_table(pa.table({"s": nested, "a": ["outer"], "l": [["a"]], "z": ["end"]}), tmp_path / "t.parquet")
    assert labels(tmp_path / "t.parquet", "a", "inner", "outer") == [0, 1, 0]
    assert labels(tmp_path / "t.parquet", "z", "end") == [1, 0]


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="2 columns named 'a'"):
        labels(table(tmp_path / "t.csv", "a,a\nx,y\n"), "a", "x")
    twice = pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"])], names=["a", "a"])
    pq.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(InvalidArgument, match="2 columns named 'a'"):
        labels(tmp_path / "t.parquet", "a", "x")


def test_forms_of_csv(tmp_path: Path) -> None:
    rows = '\ufeffa,b\r\n"x, ""y""",1\r\n"two\r\nlines",2\r\n#no comment,3'
    path = table(tmp_path / "t.csv", rows)
    schema = Schema(
        (Attribute("b", ("1", "2", "3")), Attribute("a", ('x, "y"', "#no comment"), unknown="#no comment"))
    )
    assert source_at(path).counts(schema).dense().tolist() == [1, 0, 0, 1, 0, 1]
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert labels(tmp_path / "t.csv.gz", "b", "1", "2", "3") == [1, 1, 1, 0]


def test_csv_files_are_separated_and_encoded_as_their_options_say(tmp_path: Path) -> None:
    semicolons = table(tmp_path / "t.csv", 'b;a\n1;"x;y"\n2;caf\xe9\n'.encode("latin-1"))
    read = tmp_path / "t.csv?delimiter=;&encoding=latin-1"
    assert labels(read, "a", "x;y", "caf\xe9") == [1, 1, 0]
    with pytest.raises(InvalidArgument, match="cannot be read: it is damaged, or not the kind of file that its"):
        labels(semicolons, "a", "x")
    assert labels(table(tmp_path / "t.tsv", "b\ta\n1\tx,y\n"), "a", "x,y") == [1, 0]
    assert labels(
        table(tmp_path / "u.csv", "b,a\n1,\u4e2d\n".encode("utf-16")).with_name("u.csv?encoding=utf-16"),
        "a",
        "\u4e2d",
    ) == [1, 0]


def test_numbers_may_have_a_decimal_comma(tmp_path: Path) -> None:
    schema = Schema((Attribute("a", (*bin_labels((0.0, 1.5, 10.0)), "none"), (0.0, 1.5, 10.0), missing="none"),))
    path = table(tmp_path / "t.csv", "a;b\n1,4999;x\n1,5;x\n7;x\n;x\n")
    told = path.with_name("t.csv?delimiter=;&decimal=,")
    assert source_at(told).counts(schema).dense().tolist() == [1, 2, 1]
    with pytest.raises(InvalidArgument, match="attribute a: 2 not numbers"):
        source_at(path.with_name("t.csv?delimiter=;")).counts(schema)
    # A point between thousands is not taken for a decimal one.
    table(path, "a;b\n1.234;x\n1.234,5;x\n")
    with pytest.raises(InvalidArgument, match="attribute a: 2 not numbers"):
        source_at(told).counts(schema)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("decimal=,", "table: decimal: must be . or , and another character than the delimiter"),
        ("decimal=;", "table: decimal: must be . or , and another character than the delimiter"),
        ("delimeter=;", "table: delimeter: is no option; CSV files have delimiter, decimal and encoding"),
        ("delimiter=;&delimiter=|", "table: has an option twice"),
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: str, problem: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        source_at(tmp_path / f"t.csv?{options}")
    assert refused.value.message == problem


def test_one_schema_fits_truth_values_of_both_kinds_of_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"late": [True, False, True, None]}), tmp_path / "t.parquet")
    path = table(tmp_path / "t.csv", "late,n\nTrue,1\nFALSE,2\ntrue,3\n,4\n")
    for categories in (("true", "false"), ("True", "False")):
        assert labels(path, "late", *categories) == labels(tmp_path / "t.parquet", "late", *categories) == [2, 1, 1]
    # Where both spellings are categories, each is what it says.
    assert labels(path, "late", "true", "True", "FALSE") == [1, 1, 1, 1]


def test_labels_of_a_downloaded_synopsis_are_read_again(tmp_path: Path) -> None:
    assert labels(table(tmp_path / "t.csv", "a\n'=1+2\n=1+2\n-5\n"), "a", "=1+2", "-5") == [2, 1, 0]
    assert labels(tmp_path / "t.csv", "a", "=1+2", "'=1+2", "-5") == [1, 1, 1, 0]


@pytest.mark.slow
def test_a_header_that_has_no_end_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    bomb = tmp_path / "t.csv.gz"
    with gzip.open(bomb, "wb", 1) as file:
        for _ in range(64):
            file.write(b"a" * (1 << 20))
    tracemalloc.start()
    with pytest.raises(InvalidArgument, match="table: "):
        labels(bomb, "a", "x")
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()
    quoted = table(tmp_path / "q.csv", "a," * (1 << 20))
    with pytest.raises(InvalidArgument, match="table: has a header line of 1,048,576 characters or more"):
        labels(quoted, "a", "x")


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\nx,1\n"])
@pytest.mark.parametrize("column", ["first", "last"])
@pytest.mark.parametrize("megabytes", [3, 20, 40, 70])
def test_a_line_of_more_than_two_megabytes_is_refused(
    tmp_path: Path, megabytes: int, column: str, end: bytes, name: str
) -> None:
    """DuckDB drops some last lines, and all lengths have the same limit."""
    long = b"y" * (megabytes << 20)
    body = b"a,b\nx,1\n" + (long + b",1" if column == "first" else b"x," + long) + end
    path = table(tmp_path / name, gzip.compress(body, 1) if name.endswith(".gz") else body)
    schema = Schema((Attribute("a", ("x", "other"), unknown="other"),))
    with pytest.raises(InvalidArgument, match="table: has a line of more than 2,097,152 bytes"):
        source_at(path).counts(schema)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("ended", [False, True])
def test_long_lines_below_the_limit_are_counted(tmp_path: Path, encoding: str, ending: str, ended: bool) -> None:
    long = "x," + "y" * 1_000_000
    text = ending.join(["a,b", long, "x,1", long, long]) + ending * ended
    path = table(tmp_path / "t.csv", text.encode(encoding))
    schema = Schema((Attribute("a", ("x", "other"), unknown="other"),))
    assert source_at(path.with_name(f"t.csv?encoding={encoding}")).counts(schema).records == 4


@pytest.mark.parametrize("row", ['"x', '"x\n', '"x\nx\nx\n', 'x\n"x""\nx\n', 'x\n"x"\n"\n'])
def test_a_quote_that_is_not_closed_is_refused(tmp_path: Path, row: str) -> None:
    """DuckDB drops all rows that follow it."""
    path = table(tmp_path / "t.csv", f"a\nx\n{row}")
    with pytest.raises(InvalidArgument, match="table: has a quote that is not closed"):
        labels(path, "a", "x")


def test_quoted_line_feeds_and_quotes_within_a_value_are_counted(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", 'a,b\nx,"1\n2"\n"x","""1"""\nx,5" pipe\n')
    schema = Schema((Attribute("a", ("x", "other"), unknown="other"),))
    assert source_at(path).counts(schema).records == 3


def test_hive_folders_add_no_columns(tmp_path: Path) -> None:
    folder = tmp_path / "day=monday"
    folder.mkdir()
    for path in (table(folder / "t.csv", "a\nx\n"), folder / "t.parquet"):
        if path.suffix == ".parquet":
            pq.write_table(pa.table({"a": ["x"]}), path)
        with pytest.raises(InvalidArgument, match="no column named 'day'"):
            labels(path, "day", "monday")


SECRET = "Mallory"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\na\n1\n",
        b"a,b\nMallory\n",
        b"a,b\nMallory,2,3\n",
        b'a,b\n"Mallory,2\n',
        b"a,b\nMallory,caf\xe9\n",
        b"caf\xe9,a\nMallory,1\n",
        b"a,b\n",
        b"a,b",
        b"a\n" + b"Mallory" * 1_000_000,
    ],
)
def test_unreadable_files_are_refused_without_quoting_them(tmp_path: Path, content: bytes) -> None:
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(InvalidArgument) as caught:
            labels(table(tmp_path / name, content), "a", "x")
        assert caught.value.field == "table"
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None


def test_the_line_of_a_mistake_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="at line 3"):
        labels(table(tmp_path / "t.csv", "a,b\nx,1\nx,1,1\n"), "a", "x")


@pytest.mark.parametrize(
    "name", ["gone.csv", "folder.csv", "t.txt", "t*.csv", "t[1].csv", "t?.parquet", "nul\0.csv"]
)
def test_other_paths_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    if name.startswith("t"):
        table(tmp_path / name, "a\nx\n")
    with pytest.raises(InvalidArgument, match="table"):
        labels(tmp_path / name, "a", "x")


def test_urls_are_no_paths() -> None:
    with pytest.raises(InvalidArgument, match="no such file"):
        labels(Path("https://example.org/t.csv"), "a", "x")


@pytest.mark.full
@pytest.mark.slow
def test_a_table_of_any_width_is_counted(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(100)]
    schema = Schema(tuple(Attribute(name, tuple("0123456789")) for name in names))
    rows = [names, ["3"] * 99 + ["7"], ["0"] * 100, ["3"] * 99 + ["7"]]
    data = source_at(table(tmp_path / "t.csv", "\n".join(map(",".join, rows)) + "\n")).counts(schema)
    assert (data.universe_size, data.records) == (10**100, 3)
    ((_, counts),) = data.marginals([(0, 99)])
    assert {(3, 7): counts[3, 7], (0, 0): counts[0, 0]} == {(3, 7): 2, (0, 0): 1}
    assert counts.sum() == 3


@pytest.mark.slow
def test_no_progress_is_printed_where_the_program_is_no_file() -> None:
    """As in a worker: DuckDB takes it for a terminal, and printed a bar as soon as anything took two seconds."""
    asked = "SELECT current_setting('enable_progress_bar'), current_setting('enable_progress_bar_print')"
    script = f"""
from equipoise_server.datasets.files.grouping import connect
print(*connect([]).execute({asked!r}).fetchone())
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == "True False\n"
