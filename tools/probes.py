"""What is traced to count the files that a change of some kind needs: existing examples of it, by their names.

Each example lists every name that stands for it, as regular expressions for whole names, so that trees from before
and after a renaming are counted alike: where something gets another name, add it here and keep the old one.
Hyphens count as underscores. `signatures`: only parameters, fields and their annotations are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """Something that exists, and the names that stand for it and for nothing else."""

    title: str
    names: tuple[str, ...]
    signatures: bool = False


@dataclass(frozen=True)
class Probe:
    """A kind of change, the most files that it should need, and examples of what such changes once added."""

    title: str
    most: int
    examples: tuple[Example, ...]


def column(name: str, *others: str) -> Example:
    """A column of a round, by its field's name and later ones."""
    names = (name, *others)
    return Example(name, tuple(f"(_*check_|read_|_)?{each}" for each in names))


def call(name: str, *methods: str) -> Example:
    """An RPC: its name, its messages, and what the client's and the service's methods are called."""
    return Example(name, (f"{name}(Request|Response)?", *methods))


PROBES = (
    Probe(
        "a shown column of a round",
        10,
        (
            column("close_time"),
            column("release_grid_seconds"),
            column("max_uncertified"),
            column("max_half_width"),
            column("support"),
            column("seed_commitment"),
            column("abort_reason"),
        ),
    ),
    Probe(
        "a kind of statement",
        8,
        (
            Example(
                "Marginal", ("_?marginals?", "_?Marginals?", "_?MARGINALS?", ".*_marginals?", "Marginal[A-Z].*")
            ),
            Example(
                "whatever tells kinds apart",
                (
                    "_?Marginal[A-Za-z]*",
                    "_?marginals?",
                    "_?[Ii]nterval",
                    "Statistic|Quantile|Variance|CountDistinct|CappedSum",
                    "Compiled(Statistic|Quantile|Statement)",
                    "_?compile_statistic",
                ),
            ),
            Example("Interval", ("_?Interval", "_?interval")),
            Example("Quantile", ("Quantile", "CompiledQuantile", "_?compile_quantile", "'quantile'")),
            Example(
                "CountDistinct", ("CountDistinct", "CompiledCountDistinct", "CompiledDistinct", "count_distinct")
            ),
        ),
    ),
    Probe(
        "an RPC",
        7,
        (
            call("SetAuditNonce", "set_audit_nonce"),
            call("RetireDataset", "retire_dataset"),
            call("GetSealedSeed", "get_sealed_seed"),
            call("SetCap", "set_cap"),
            call("WithdrawWorkload", "withdraw", "withdraw_workload"),
            call("DownloadSynopsis", "download_synopsis"),
        ),
    ),
    Probe(
        "a source of data",
        4,
        (
            Example(
                "CSV and Parquet files",
                (
                    "load_(histogram|counts|table)",
                    "(CSV|PARQUET)_SUFFIXES",
                    "(Csv|Parquet|File|DuckDb|Table)Source",
                    "(Csv|Parquet|Table)File",
                    ".*datasets\\.files",
                    "duckdb(\\..*)?",
                ),
            ),
        ),
    ),
    Probe(
        "a table that is not dense",
        4,
        (
            Example("a histogram over the universe in a signature", ("histograms?", "Histogram"), signatures=True),
            Example("the dense counts themselves", ("DenseCounts", "dense", ".*dense_counts", "build_counts")),
        ),
    ),
    Probe(
        "a mechanism",
        6,
        (
            Example(
                "small_db",
                ("small_db", "SMALL_DB", "Small(Database|Db)[A-Za-z]*", ".*mechanisms\\.small_db(\\..*)?"),
            ),
            Example(
                "projection", ("'projection'", "PROJECTION", "Projection", ".*mechanisms\\.projection(\\..*)?")
            ),
            Example(
                "multiplicative_weights",
                (
                    "multiplicative_weights",
                    "MULTIPLICATIVE_WEIGHTS",
                    "MultiplicativeWeights[A-Za-z]*",
                    ".*mechanisms\\.(weights|multiplicative_weights)\\..*",
                ),
            ),
            Example(
                "online_private",
                (
                    "online_private",
                    "OnlinePrivate[A-Za-z]*",
                    ".*online\\.private[a-z_]*",
                    ".*online_private(\\..*)?",
                ),
            ),
        ),
    ),
    Probe(
        "OIDC as a credential",
        5,
        (
            Example("a certificate in a signature", ("certificates?", "x509\\..*", "pem"), signatures=True),
            Example(
                "a certificate anywhere",
                ("_?certificates?", "_?certificate_.*", ".*_certificates?", "x509", "_?pem"),
            ),
        ),
    ),
)
