"""One engine with the views of a fleet: `ask` returns the rows of a question, seconds, files and bytes read."""

import os
import re
import sys
import time


def statements(folder, name, **values):
    """The statements of a template."""
    with open(f"{folder}/{name}.sql") as file:
        text = re.sub(r"--.*", "", file.read())
    for key, value in values.items():
        text = text.replace("{" + key + "}", value)
    return [statement for statement in text.split(";") if statement.strip()]


class DuckDb:
    name = "DuckDB"
    read_means = "bytes of data; files of all scans"

    def __init__(self, folder, url):
        import duckdb

        self.version = duckdb.__version__
        self.connection = duckdb.connect()
        for statement in statements(folder, "duckdb", url=url):
            self.connection.execute(statement)

    def ask(self, question):
        begin = time.monotonic()
        rows = self.connection.execute(question).fetchall()
        seconds = time.monotonic() - begin
        profile = self.connection.execute(f"EXPLAIN ANALYZE {question}").fetchall()[0][1]
        files = sum(int(count) for count in re.findall(r"Total Files Read: (\d+)", profile))
        amount, unit = re.search(r"Data Read:\s+([\d.]+) (\w+)", profile).groups()
        scale = {"bytes": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}[unit]
        return rows, seconds, files, float(amount) * scale


class ClickHouse:
    name = "ClickHouse (chdb)"

    def __init__(self, folder, url):
        from chdb import session

        read = "s3" if url.startswith("http") else "file"

        self.session = session.Session()
        self.rows("CREATE DATABASE fleet")
        self.rows("USE fleet")
        self.version = self.rows("SELECT version()")[0][0]
        for statement in statements(folder, "clickhouse", url=url, read=read):
            self.rows(statement)

    def rows(self, text):
        import json

        answer = str(self.session.query(text, "JSONCompact"))
        if not answer:
            return []
        found = json.loads(answer)
        self.bytes = found["statistics"]["bytes_read"]
        kinds = [column["type"] for column in found["meta"]]
        # Integers of 64 bits come as text.
        whole = [re.fullmatch(r"(Nullable\()?U?Int\d+\)?", kind) is not None for kind in kinds]
        return [
            tuple(int(cell) if is_whole and cell is not None else cell for cell, is_whole in zip(row, whole))
            for row in found["data"]
        ]

    def opened(self):
        text = "SELECT sum(value) FROM system.events WHERE event IN ('EngineFileLikeReadFiles', 'S3GetObject')"
        return self.rows(text)[0][0]

    def ask(self, question):
        before = self.opened()
        begin = time.monotonic()
        rows = self.rows(question)
        seconds, size = time.monotonic() - begin, self.bytes
        return rows, seconds, self.opened() - before, size


def snappy():
    """Options of Java that name the library for glibc: Snappy takes that for musl where Debian's musl is installed."""
    import glob
    import zipfile

    import pyspark

    # The path may have brackets.
    jars = glob.escape(os.path.join(os.path.dirname(pyspark.__file__), "jars"))
    jar = glob.glob(f"{jars}/snappy-java-*.jar")[0]
    name = "libsnappyjava.so"
    # Another process may have it mapped.
    if not os.path.exists(name):
        with zipfile.ZipFile(jar) as packed, open(f"{name}.new", "wb") as file:
            file.write(packed.read(f"org/xerial/snappy/native/Linux/{os.uname().machine}/{name}"))
        os.rename(f"{name}.new", name)
    return f"-Dorg.xerial.snappy.lib.path={os.getcwd()} -Dorg.xerial.snappy.lib.name={name}"


class Spark:
    name = "Spark"

    def __init__(self, folder, url):
        # Nothing listens on another address.
        os.environ.update(SPARK_LOCAL_IP="127.0.0.1", SPARK_LOCAL_HOSTNAME="localhost")
        from pyspark.sql import SparkSession

        library = snappy()
        settings = {
            "spark.driver.extraJavaOptions": library,
            "spark.executor.extraJavaOptions": library,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": os.path.abspath("spark-warehouse"),
            "spark.log.level": "ERROR",
        }
        builder = SparkSession.builder.master(os.environ.get("FLEET_SPARK", "local-cluster[2,1,1024]"))
        for key, value in settings.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        self.version = f"{self.session.version}, {self.session.sparkContext.master}"
        for statement in statements(folder, "spark", url=url):
            self.session.sql(statement)

    def ask(self, question):
        begin = time.monotonic()
        rows = [tuple(row) for row in self.session.sql(question).collect()]
        seconds = time.monotonic() - begin
        files, size = self.metrics()
        return rows, seconds, files, size

    def metrics(self):
        """Files and bytes of all scans of the last question, from Spark's own counts."""
        store = self.session._jsparkSession.sharedState().statusStore()
        # The counts arrive a little later.
        time.sleep(1)
        execution = store.executionsList().last()
        values = store.executionMetrics(execution.executionId())
        totals = {"number of files read": 0, "size of files read": 0}
        metrics = execution.metrics()
        seen = set()
        for at in range(metrics.size()):
            metric = metrics.apply(at)
            number = metric.accumulatorId()
            if metric.name() in totals and number not in seen and values.contains(number):
                seen.add(number)
                totals[metric.name()] += amount(values.apply(number))
        return int(totals["number of files read"]), totals["size of files read"]


def amount(text):
    """The number that Spark shows as '1,234' or as '1.2 MiB', after 'total (min, med, max ...)'."""
    found = re.search(r"([\d.,]+)( [KMG]iB| B)?", text.splitlines()[-1])
    scale = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}.get((found[2] or "").strip(), 1)
    return float(found[1].replace(",", "")) * scale


ENGINES = {"duckdb": DuckDb, "clickhouse": ClickHouse, "spark": Spark}
