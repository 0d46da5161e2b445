"""Writes the page with the results: python page.py PAGE RESULT... of evidence.py, the smallest fleet first."""

import json
import sys

INTRO = """# Fleets in three engines

This page is for readers who want to know whether answers about many machines are right, and what they cost.
`cargo xtask fleet evidence` writes it. The command generates fleets with planted causes and asks each engine the same
questions. It fails unless all answers are equal: integers and names exactly, ratios to 1e-9. It also fails if
`fleet report` misses a planted cause, or names a host, a culprit or a kernel that has none.

The questions are in `crates/fleet/src/sql/questions`: one text for all engines. The views are in the folder above.
"""
OVERLAP = """The last three hours of the last day are single files. The first of these hours is also in compacted files.
"""
COSTS = """Seconds are those of one run until all rows are there. Files are those that the engine says it read, over all
scans: a file counts twice if a question reads its rows and the names of its host-hours. Bytes have another meaning in
each engine: what DuckDB reads from files, what ClickHouse counts after decoding, the sizes of the files that Spark
opens.
"""
DAY = """In a copy of the fleet of {hosts:,} hosts, each file of another day is replaced by one that is no Parquet file.
{count} questions with a condition on the day give the same answers there, in each engine. An engine that opens another
day's file fails.
"""
S3 = """ClickHouse's `s3()` asks the fleet of {hosts:,} hosts in a server that checks signatures (moto, on the same
machine). The answers are those from files.
"""


def table(head, rows, align="--:"):
    lines = [head, ["---"] + [align] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def size(count):
    for unit in ["B", "kB", "MB"]:
        if count < 1000:
            return f"{count:.1f} {unit}" if count < 10 and unit != "B" else f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def fleets(results):
    for of in results:
        planted, answers = of["planted"], of["engines"]["duckdb"]["answers"]
        rows = sum(row[1] for row in answers["all rows"]["rows"])
        counts = [planted["hosts"], planted["days"], planted["host_hours"], rows, of["files"]]
        each = of["bytes"] / planted["host_hours"]
        yield [f"{count:,}" for count in counts] + [size(of["bytes"]), size(each)]


def costs(engines):
    for name, first in engines["duckdb"]["answers"].items():
        row = [name, str(len(first["rows"]))]
        for engine in engines.values():
            answer = engine["answers"][name]
            row += [f"{answer['seconds']:.2f}", f"{answer['files']:,}", size(answer["bytes"])]
        yield row


def seconds(result, engine, question):
    return result["engines"][engine]["answers"][question]["seconds"]


def read(result, engine, question):
    return max(result["engines"][engine]["answers"][question]["bytes"], 1)


def page(results):
    first = results[0]
    engines = first["engines"].values()
    short = [engine["name"].split(" ")[0] for engine in engines]
    versions = ", ".join(f"{engine['name']} {engine['version']}" for engine in engines)
    yield INTRO
    yield f"Engines: {versions}. The machine has two CPUs.\nOther work ran beside.\n"
    yield "## The fleets\n"
    head = ["hosts", "days", "host-hours", "rows", "files", "size", "size of a host-hour"]
    yield table(head, fleets(results))
    yield OVERLAP
    yield "## Planted causes\n"
    for of in results:
        yield f"{of['planted']['hosts']:,} hosts:\n"
        yield table(["planted", "found"], of["causes"], "---")
    yield "## What the report says\n"
    yield "`fleet report` of the three days, with DuckDB:\n"
    for of in results:
        yield f"{of['planted']['hosts']:,} hosts, {of['report_seconds']:.0f} s (debug build):\n"
        yield table(["judged", "found"], of["report"], "---")
    yield "## What a question costs\n"
    yield COSTS
    for of in results:
        yield f"### {of['planted']['hosts']:,} hosts\n"
        head = ["question", "rows"]
        for name in short:
            head += [f"{name}, s", "files", "bytes"]
        yield table(head, costs(of["engines"]))
    if len(results) > 1:
        last = results[-1]
        yield "## Growth\n"
        hosts = last["planted"]["hosts"] / first["planted"]["hosts"]
        yield f"{hosts:.0f} times the hosts take {last['bytes'] / first['bytes']:.1f} times the bytes. Times and bytes read grow by:\n"
        rows = []
        for name in first["engines"]["duckdb"]["answers"]:
            grown = [of(last, engine, name) / of(first, engine, name) for engine in first["engines"] for of in (seconds, read)]
            rows.append([name] + [f"{times:.1f}" for times in grown])
        yield table(["question"] + [f"{name}, {what}" for name in short for what in ("s", "bytes")], rows)
    if "only_its_day" in first:
        yield "## A day's question reads a day\n"
        yield DAY.format(hosts=first["planted"]["hosts"], count=first["only_its_day"])
        yield "## In an S3 store\n"
        yield S3.format(hosts=first["planted"]["hosts"])
        rows = [
            [name, str(len(of["rows"])), f"{of['seconds']:.2f}", f"{of['files']:,}"]
            for name, of in first["in_s3"].items()
        ]
        yield table(["question", "rows", "s", "requests for parts of objects"], rows)


results = []
for path in sys.argv[2:]:
    with open(path) as file:
        results.append(json.load(file))
with open(sys.argv[1], "w") as file:
    file.write("\n".join(page(results)))
