"""What DuckDB sees in a folder of parquet tables, as JSON on standard output."""

import json
import os
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
        # As text: they can exceed the integers of JSON readers.
        "sums": {column: None if total is None else str(int(total)) for column, total in zip(numbers, sums)},
    }


answer = {name: table(name) for name in sys.argv[2:]}
with open(f"{folder}/views.sql") as views:
    statements = views.read()
# The views find the run through a variable, or else in the current folder.
os.chdir(folder)
duckdb.sql(statements)
here = rows("SELECT count(*) FROM attributions")
os.chdir("/")
duckdb.sql(f"set variable run = '{folder}'")
duckdb.sql(statements)
assert rows("SELECT count(*) FROM attributions") == here
answer["by_culprit"] = [
    [cpu, kind, name, count, str(int(net)), str(int(gross))]
    for cpu, kind, name, count, net, gross in rows(
        "SELECT cpu, kind, name, count(*), sum(net_ns), sum(gross_ns) FROM stalls JOIN attributions USING (stall_id)"
        " GROUP BY ALL ORDER BY ALL"
    )
]
answer["attributions"] = [column for column, *_ in rows("DESCRIBE attributions")]
answer["remarks"] = rows(
    "SELECT placement, confidence, evidence, count(*) FROM attributions GROUP BY ALL ORDER BY ALL"
)
answer["views"] = rows("SELECT (SELECT count(*) FROM culprits), (SELECT count(*) FROM intervals)")[0]
answer["victims"] = [name for (name,) in rows("SELECT DISTINCT comm FROM stalls ORDER BY comm")]
json.dump(answer, sys.stdout)
