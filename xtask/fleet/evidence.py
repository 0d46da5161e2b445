"""Asks a generated fleet the same questions in every engine, compares the answers, has `jitterscope-fleet report` judge
it, and writes what it saw as JSON.

With `more` as the last argument, it also checks that a day's questions read one day, and asks the fleet in S3."""

import json
import math
import os
import subprocess
import sys

import report
import s3

PROGRAM, SQL, FLEET, OUT, *MORE = sys.argv[1:]
HERE = os.path.dirname(os.path.abspath(__file__))
ENGINES = ["duckdb", "clickhouse", "spark"]
FIRST, SECOND, LAST = "2026-11-02", "2026-11-03", "2026-11-04"
# Questions that a condition on the day limits, and the day. On the last day, hours are in raw and in days.
OF_A_DAY = [
    ("worst-hosts", FIRST),
    ("worst-hosts", SECOND),
    ("top-culprits", SECOND),
    ("top-culprits", LAST),
    ("long-stalls", SECOND),
    ("worst-stalls", SECOND),
    ("owners", SECOND),
    ("day-hours", LAST),
]
OF_ALL = [
    ("new-culprits", SECOND),
    ("kernels", ""),
    ("kernel-culprits", ""),
    ("lost-records", ""),
    ("clocks", ""),
]
# Says how many rows each record has, and what they sum to: shows rows that are lost or double.
COUNTS = "SELECT record, count(*) AS n, sum(coalesce(sum_ns, 0)) AS ns FROM rollups GROUP BY record ORDER BY record"

BATCHES = (
    "SELECT cluster, count(DISTINCT batch) AS n FROM rollups WHERE record = 'hour' GROUP BY cluster ORDER BY cluster"
)


def question(name, day, planted):
    with open(f"{SQL}/questions/{name}.sql") as file:
        text = file.read().strip().rstrip(";")
    return text.replace("{day}", day).replace("{host}", planted["firmware_host"])


def ask(engine, url, questions, label):
    """The answers of an engine, in a process of its own."""
    with open(f"{label}.questions.json", "w") as file:
        json.dump(questions, file)
    out = f"{label}.{engine}.json"
    with open(f"{label}.{engine}.log", "w") as log:
        done = subprocess.run(
            [sys.executable, f"{HERE}/ask.py", engine, SQL, url, f"{label}.questions.json", out], stderr=log, stdout=log
        )
    if done.returncode:
        with open(log.name) as file:
            sys.exit(f"{engine} failed, see {log.name}:\n{file.read()[-2000:]}")
    with open(out) as file:
        return json.load(file)


def same(one, other):
    """Integers and words are equal, ratios to 1e-9."""
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-15)
    return one == other


def compare(label, answers):
    first, *others = answers.items()
    for name, answer in others:
        rows, theirs = first[1]["rows"], answer["rows"]
        if len(rows) != len(theirs):
            sys.exit(f"{label}: {first[0]} has {len(rows)} rows, {name} {len(theirs)}")
        for one, other in zip(rows, theirs):
            if not all(same(a, b) for a, b in zip(one, other, strict=True)):
                sys.exit(f"{label}: {first[0]} has {one}, {name} {other}")


def one_day_only(fleet, day):
    """The same fleet, but all files of other days are no Parquet files: whoever reads one fails."""
    copy = os.path.abspath(f"{fleet}-only-{day}")
    if os.path.exists(copy):
        return copy
    for folder, _, files in os.walk(f"{fleet}/v1"):
        to = copy + folder[len(fleet) :]
        os.makedirs(to)
        for name in files:
            if f"day={day}" in folder:
                os.symlink(os.path.abspath(f"{folder}/{name}"), f"{to}/{name}")
            else:
                with open(f"{to}/{name}", "w") as file:
                    file.write("no Parquet file")
    return copy


def found(planted, rows):
    """Whether the answers name the planted causes; each with what was planted and what was found."""
    new = rows["new-culprits " + SECOND][0]
    # A few of very many hosts lose as much without a cause.
    worst = [row[0] for row in rows["worst-hosts " + FIRST]]
    bad = worst.index(planted["firmware_host"]) if planted["firmware_host"] in worst else None
    slower, clocks = rows["kernel-culprits"][0], {row[0]: row for row in rows["clocks"]}
    renamed, ahead = clocks[planted["renamed_host"]], clocks[planted["host_ahead"]]
    kind, name, times = planted["slower_culprit"]
    counts = {record: n for record, n, _ in rows["all rows"]}
    batches = sum(row[1] for row in rows["batches"])
    checks = [
        (
            "bad firmware on one host",
            bad is not None,
            f"number {bad + 1} of worst-hosts" if bad is not None else "not in worst-hosts",
        ),
        (
            f"a noisy pod on {planted['noisy_hosts']} hosts from the second day on",
            new[2:4] == [planted["noisy_pod"], planted["noisy_hosts"]] and new[5] == SECOND,
            f"first of new-culprits, on {new[3]} hosts since {new[5]}",
        ),
        (
            f"{kind} {name} takes {times} times as long on one kernel",
            slower[:3] == [kind, name, planted["slower_kernel"]] and abs(slower[5] / times - 1) < 0.15,
            f"first of kernel-culprits, {slower[5]:.2f} times the best kernel",
        ),
        ("a host with a new name", renamed[1] == 2, f"in clocks: {renamed[2]}, {renamed[3]}"),
        (
            "a clock that is 3 h ahead for 12 h",
            ahead[4:6] == [0, planted["ahead_s"]],
            f"in clocks: {ahead[5]} s ahead",
        ),
        (
            "hours in both v1/days and v1/raw",
            batches == planted["host_hours"],
            f"{batches:,} host-hours, each once, in {counts['hour']:,} rows of hours",
        ),
    ]
    for what, is_found, how in checks:
        if not is_found:
            sys.exit(f"not found: {what}; {how}")
    return [(what, how) for what, _, how in checks]


def size(fleet):
    files = [os.path.join(folder, name) for folder, _, names in os.walk(f"{fleet}/v1") for name in names]
    return len(files), sum(map(os.path.getsize, files))


def only_its_day(planted, label):
    """Asks for the first day, because DuckDB learns the columns from the first file."""
    only = {f"{name} {FIRST}": question(name, FIRST, planted) for name, _ in OF_A_DAY}
    whole = ask(ENGINES[0], os.path.abspath(FLEET), only, f"{label}-whole")
    for engine in ENGINES:
        alone = ask(engine, one_day_only(FLEET, FIRST), only, f"{label}-only")
        for name in only:
            answers = {"all days": whole["answers"][name], engine: alone["answers"][name]}
            compare(f"{label}, only its day: {name}", answers)
    return len(only)


def in_s3(questions, files, label):
    """ClickHouse's answers from S3, which must be those from files."""
    with s3.server() as (endpoint, key, secret):
        s3.upload(FLEET, endpoint, key, secret)
        os.environ.update(AWS_ACCESS_KEY_ID=key, AWS_SECRET_ACCESS_KEY=secret, AWS_REGION="us-east-1")
        stored = ask("clickhouse", f"{endpoint}/{s3.BUCKET}/{s3.PREFIX}", questions, f"{label}-s3")
    for name in questions:
        compare(f"{label} in S3: {name}", {"files": files[name], "S3": stored["answers"][name]})
    return stored["answers"]


with open(f"{FLEET}/planted.json") as file:
    planted = json.load(file)
of_a_day = {f"{name} {day}": question(name, day, planted) for name, day in OF_A_DAY}
questions = of_a_day | {f"{name} {day}".strip(): question(name, day, planted) for name, day in OF_ALL}
questions |= {"all rows": COUNTS, "batches": BATCHES}
label = os.path.basename(FLEET)
engines = {engine: ask(engine, os.path.abspath(FLEET), questions, label) for engine in ENGINES}
for name in questions:
    compare(f"{label}: {name}", {engine: engines[engine]["answers"][name] for engine in ENGINES})
findings, took = report.judged(PROGRAM, FLEET, (FIRST, LAST), label)
files, total = size(FLEET)
result = {
    "planted": planted,
    "files": files,
    "bytes": total,
    "engines": engines,
    "causes": found(planted, {name: engines["duckdb"]["answers"][name]["rows"] for name in questions}),
    "report": report.check(planted, findings, label),
    "report_seconds": took,
}
if MORE:
    result["only_its_day"] = only_its_day(planted, label)
    result["in_s3"] = in_s3(of_a_day, engines["clickhouse"]["answers"], label)
with open(OUT, "w") as file:
    json.dump(result, file)
