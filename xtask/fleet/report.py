"""Has `jitterscope-fleet report` judge a generated fleet: the planted causes are there, and nothing else."""

import json
import os
import subprocess
import sys
import time


def judged(program, fleet, days, label):
    """The findings of the report, and how long it took."""
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    begun = time.monotonic()
    done = subprocess.run(
        [program, "report", f"file://{os.path.abspath(fleet)}", "--from", days[0], "--to", days[1], "--json"],
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{label}: the report failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout), time.monotonic() - begun


def check(planted, findings, label):
    """What was planted, and what the report says of it. Exits where something is missing, or more is there."""
    worst, new = findings["worst"], findings["new"]
    noisy = [of for of in worst if of["host_id"] != planted["firmware_host"]]
    culprit = new[0]["name"] if new else None
    kernels = [of for of in findings["changes"] if of["varied"] == "kernel"]
    decided = ["worse", "better"]
    figures = [figure for of in kernels for figure in of["figures"] if figure["comparison"]["verdict"] in decided]
    slower = [of["comparison"]["change"] for of in figures if of["culprit"] == planted["slower_culprit"][:2]]
    tunings = [of for of in findings["changes"] if of["varied"] == "tuning"]
    firmware = len(worst) - len(noisy)
    checks = [
        (
            "bad firmware on one host, a noisy pod on {noisy_hosts}; no other host is worse".format(**planted),
            firmware == 1
            and len(noisy) == planted["noisy_hosts"]
            and all(culprit in [cause["name"] for cause in of["causes"]] for of in noisy),
            f"{firmware} host with bad firmware, {len(noisy)} hosts with {culprit}",
        ),
        (
            "the pod is new; no other culprit is",
            [(of["owner"], of["hosts"]) for of in new] == [(planted["noisy_pod"], planted["noisy_hosts"])],
            f"{len(new)} new culprit, on {new[0]['hosts'] if new else 0} hosts",
        ),
        (
            "one kernel is slower in one culprit; no other difference of kernels",
            len(figures) == len(slower) and len(slower) <= 1 and (slower or planted["hosts"] < 1000),
            f"{slower[0]:+.0%} for that culprit" if slower else "not found: the fleet is too small for it",
        ),
        (
            "one tuning loses more than the other",
            len(tunings) == 1 and all(of["comparison"]["change"] > 1 for of in tunings[0]["figures"]),
            f"{tunings[0]['figures'][0]['comparison']['change']:+.0%} of all stolen time" if tunings else "not found",
        ),
    ]
    for what, is_so, how in checks:
        if not is_so:
            sys.exit(f"{label}: the report does not say what was planted: {what}; {how}")
    return [(what, how) for what, _, how in checks]
