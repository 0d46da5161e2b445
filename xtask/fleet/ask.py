"""Asks one engine the questions of a file and writes its answers, as JSON."""

import datetime
import decimal
import json
import resource
import sys

from engines import ENGINES

_, engine, folder, url, questions, out = sys.argv


def plain(cell):
    if isinstance(cell, decimal.Decimal):
        return int(cell)
    if isinstance(cell, (datetime.date, datetime.datetime)):
        return str(cell)
    return cell


with open(questions) as file:
    asked = json.load(file)
there = ENGINES[engine](folder, url)
answers = {}
for label, question in asked.items():
    rows, seconds, files, size = there.ask(question)
    answers[label] = {
        "rows": [[plain(cell) for cell in row] for row in rows],
        "seconds": seconds,
        "files": files,
        "bytes": size,
    }
    print(f"{engine}: {label}: {len(rows)} rows, {seconds:.2f} s, {files} files", file=sys.stderr)
with open(out, "w") as file:
    json.dump({"name": there.name, "version": there.version, "answers": answers}, file)
