-- Views of the rollups below {url} for DuckDB: a path, or s3://BUCKET/PREFIX with the extension httpfs and a secret.
-- Either of v1/days and v1/raw may be missing or empty, but not both: DuckDB needs one file to know the columns.
-- A condition on day or cluster limits the files that a question opens.

-- All rows of all files. `compacted` says that a row comes from v1/days.
CREATE OR REPLACE VIEW rollup_files AS
SELECT
    record, batch, host_id, host, boot, kernel, cpu_model, machine, firmware, tuning, version, probe, cpus,
    CAST(cpu_count AS BIGINT) AS cpu_count, make_timestamp(CAST(hour_s AS BIGINT) * 1000000) AS hour, clock_ahead_s,
    kind, name, owner, CAST(count AS BIGINT) AS count, CAST(sum_ns AS BIGINT) AS sum_ns,
    CAST(max_ns AS BIGINT) AS max_ns, CAST(measured_ns AS BIGINT) AS measured_ns, CAST(lost AS BIGINT) AS lost, key,
    bucket, CAST(stall AS BIGINT) AS stall, CAST(cpu AS BIGINT) AS cpu, CAST(start_ns AS BIGINT) AS start_ns, phase,
    cluster, day,
    filename LIKE '%/v1/days/%' AS compacted
FROM read_parquet('{url}/v1/*/cluster=*/day=*/*.parquet', filename = true,
    hive_partitioning = true, hive_types = {'cluster': VARCHAR, 'day': DATE});

-- Each row once: those of v1/days, and those of v1/raw that v1/days lacks. A left join and not an anti join, because
-- DuckDB then applies a condition on day to both sides.
CREATE OR REPLACE VIEW rollups AS
SELECT * EXCLUDE (compacted) FROM rollup_files WHERE compacted
UNION ALL
SELECT fresh.* EXCLUDE (compacted)
FROM (SELECT * FROM rollup_files WHERE NOT compacted) AS fresh
LEFT JOIN (
    SELECT DISTINCT cluster, day, batch FROM rollup_files WHERE compacted AND record = 'hour'
) AS packed
ON fresh.cluster = packed.cluster AND fresh.day = packed.day AND fresh.batch = packed.batch
WHERE packed.batch IS NULL;

-- One row per host, group of CPUs and hour: how many stalls, how much time they took of how much measured time.
CREATE OR REPLACE VIEW hours AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    version, probe, clock_ahead_s, count AS stalls, sum_ns AS stolen_ns, max_ns AS longest_ns, measured_ns, lost
FROM rollups WHERE record = 'hour';

-- Who took the time of each hour: the 64 largest culprits, then one row '(others)' per kind.
CREATE OR REPLACE VIEW culprits AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    kind, name, owner, count AS parts, sum_ns AS stolen_ns, max_ns AS longest_ns
FROM rollups WHERE record = 'culprit';

-- How long stalls are ('stall') and parts of a kind ('part:KIND'). Bucket b holds those from 2^((b-1)/4) to
-- 2^(b/4) seconds, the latter included.
CREATE OR REPLACE VIEW buckets AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    key, bucket, count AS entries
FROM rollups WHERE record = 'bucket';

-- The 8 longest stalls of each hour. `batch`, `cpus` and `stall` name one.
CREATE OR REPLACE VIEW stalls AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    batch, stall, cpu, start_ns, sum_ns AS length_ns
FROM rollups WHERE record = 'stall';

-- Who took the time of each of those stalls.
CREATE OR REPLACE VIEW parts AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    batch, stall, kind, name, owner, phase, sum_ns AS stolen_ns
FROM rollups WHERE record = 'part';
