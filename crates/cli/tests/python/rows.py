"""The rows that a piece of code of docs/queries.md computes from the run in a folder, as JSON on standard output."""

import math
import sys

import pandas as pd
import polars as pl

folder, code = sys.argv[1:]
names = {"run": folder, "math": math, "pd": pd, "pl": pl}
exec(code, names)
rows = names["rows"]
print(rows.to_json(orient="records") if isinstance(rows, pd.DataFrame) else rows.write_json())
