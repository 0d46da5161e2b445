-- Views of the rollups below {url} for Spark (tried with 4.3): a path, or s3a://BUCKET/PREFIX with hadoop-aws.
-- The two external tables hold no data, so DROP TABLE deletes none. v1/days and v1/raw may both be missing or empty.
-- A session lists the files once: REFRESH TABLE rollup_days and rollup_raw to see new ones.
-- A condition on day or cluster limits the files that a question opens.

-- The folders say which days exist, not the catalog.
SET spark.sql.hive.manageFilesourcePartitions = false;
DROP TABLE IF EXISTS rollup_days;
CREATE TABLE rollup_days (
    record STRING, batch STRING, host_id STRING, host STRING, boot STRING, kernel STRING, cpu_model STRING,
    machine STRING, firmware STRING, tuning STRING, version STRING, probe STRING, cpus STRING, cpu_count BIGINT,
    hour_s DECIMAL(20, 0), clock_ahead_s INT, kind STRING, name STRING, owner STRING, count DECIMAL(20, 0),
    sum_ns DECIMAL(20, 0), max_ns DECIMAL(20, 0), measured_ns DECIMAL(20, 0), lost DECIMAL(20, 0), key STRING,
    bucket INT, stall BIGINT, cpu BIGINT, start_ns DECIMAL(20, 0), phase STRING, cluster STRING, day DATE
) USING parquet PARTITIONED BY (cluster, day) LOCATION '{url}/v1/days';

DROP TABLE IF EXISTS rollup_raw;
CREATE TABLE rollup_raw (
    record STRING, batch STRING, host_id STRING, host STRING, boot STRING, kernel STRING, cpu_model STRING,
    machine STRING, firmware STRING, tuning STRING, version STRING, probe STRING, cpus STRING, cpu_count BIGINT,
    hour_s DECIMAL(20, 0), clock_ahead_s INT, kind STRING, name STRING, owner STRING, count DECIMAL(20, 0),
    sum_ns DECIMAL(20, 0), max_ns DECIMAL(20, 0), measured_ns DECIMAL(20, 0), lost DECIMAL(20, 0), key STRING,
    bucket INT, stall BIGINT, cpu BIGINT, start_ns DECIMAL(20, 0), phase STRING, cluster STRING, day DATE
) USING parquet PARTITIONED BY (cluster, day) LOCATION '{url}/v1/raw';

-- Each row once: those of v1/days, and those of v1/raw that v1/days lacks.
CREATE OR REPLACE TEMPORARY VIEW rollups AS
SELECT
    record, batch, host_id, host, boot, kernel, cpu_model, machine, firmware, tuning, version, probe, cpus,
    CAST(cpu_count AS BIGINT) AS cpu_count,
    TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, hour_s) AS hour, clock_ahead_s, kind, name,
    owner, CAST(count AS BIGINT) AS count, CAST(sum_ns AS BIGINT) AS sum_ns, CAST(max_ns AS BIGINT) AS max_ns,
    CAST(measured_ns AS BIGINT) AS measured_ns, CAST(lost AS BIGINT) AS lost, key, bucket,
    CAST(stall AS BIGINT) AS stall, CAST(cpu AS BIGINT) AS cpu, CAST(start_ns AS BIGINT) AS start_ns, phase,
    cluster, day
FROM (
    SELECT * FROM rollup_days
    UNION ALL
    SELECT fresh.*
    FROM rollup_raw AS fresh
    LEFT ANTI JOIN (SELECT DISTINCT cluster, day, batch FROM rollup_days WHERE record = 'hour') AS packed
    ON fresh.cluster = packed.cluster AND fresh.day = packed.day AND fresh.batch = packed.batch
);

-- One row per host, group of CPUs and hour: how many stalls, how much time they took of how much measured time.
CREATE OR REPLACE TEMPORARY VIEW hours AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    version, probe, clock_ahead_s, count AS stalls, sum_ns AS stolen_ns, max_ns AS longest_ns, measured_ns, lost
FROM rollups WHERE record = 'hour';

-- Who took the time of each hour: the 64 largest culprits, then one row '(others)' per kind.
CREATE OR REPLACE TEMPORARY VIEW culprits AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    kind, name, owner, count AS parts, sum_ns AS stolen_ns, max_ns AS longest_ns
FROM rollups WHERE record = 'culprit';

-- How long stalls are ('stall') and parts of a kind ('part:KIND'). Bucket b holds those from 2^((b-1)/4) to
-- 2^(b/4) seconds, the latter included.
CREATE OR REPLACE TEMPORARY VIEW buckets AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    key, bucket, count AS entries
FROM rollups WHERE record = 'bucket';

-- The 8 longest stalls of each hour. `batch`, `cpus` and `stall` name one.
CREATE OR REPLACE TEMPORARY VIEW stalls AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    batch, stall, cpu, start_ns, sum_ns AS length_ns
FROM rollups WHERE record = 'stall';

-- Who took the time of each of those stalls.
CREATE OR REPLACE TEMPORARY VIEW parts AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    batch, stall, kind, name, owner, phase, sum_ns AS stolen_ns
FROM rollups WHERE record = 'part';
