"""What DuckDB sees in a folder of parquet tables, as JSON on standard output."""

import json
import sys

import duckdb

folder = sys.argv[1]


def rows(query):
    return duckdb.sql(query).fetchall()


def table(name):
    source = f"read_parquet('{folder}/{name}')"
    described = rows(f"DESCRIBE SELECT * FROM {source}")
    numbers = [column for column, kind, *_ in described if kind != "VARCHAR"]
    sums = rows(f"SELECT {', '.join(f'sum({column})' for column in numbers)} FROM {source}")[0]
    required = {
        column: repetition == "REQUIRED"
        for column, repetition in rows(
            f"SELECT name, repetition_type FROM parquet_schema('{folder}/{name}') WHERE type IS NOT NULL"
        )
    }
    return {
        "rows": rows(f"SELECT count(*) FROM {source}")[0][0],
        "columns": [[column, kind, required[column]] for column, kind, *_ in described],
        # As text: they can be wider than what JSON's readers hold.
        "sums": {column: None if total is None else str(int(total)) for column, total in zip(numbers, sums)},
    }


answer = {name: table(name) for name in sys.argv[2:]}
gaps, parts = (f"read_parquet('{folder}/{name}.parquet')" for name in ("gaps", "attributions"))
answer["by_culprit"] = [
    [cpu, kind, name, count, str(int(net))]
    for cpu, kind, name, count, net in rows(
        f"SELECT cpu, kind, name, count(*), sum(net_ns) FROM {gaps} JOIN {parts} USING (stall_id)"
        " GROUP BY ALL ORDER BY ALL"
    )
]
answer["victims"] = [name for (name,) in rows(f"SELECT DISTINCT comm FROM {gaps} ORDER BY comm")]
json.dump(answer, sys.stdout)
