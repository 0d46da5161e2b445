-- Views of the rollups below {url} for ClickHouse (tried with 26.9).
-- {read} is the table function that reads files: file for a path, s3 for the address of a bucket, gcs for Google's.
-- v1/days and v1/raw may both be missing or empty: the columns are declared here.
-- A condition on day or cluster limits the files that a question opens.

-- All rows of all files. `compacted` says that a row comes from v1/days.
CREATE OR REPLACE VIEW rollup_files AS
SELECT
    record, batch, host_id, host, boot, kernel, cpu_model, machine, firmware, tuning, version, probe, cpus,
    toInt64(cpu_count) AS cpu_count, toDateTime(hour_s, 'UTC') AS hour, clock_ahead_s, kind, name, owner,
    toInt64(count) AS count, toInt64(sum_ns) AS sum_ns, toInt64(max_ns) AS max_ns,
    toInt64(measured_ns) AS measured_ns, toInt64(lost) AS lost, key, bucket, toInt64(stall) AS stall,
    toInt64(cpu) AS cpu, toInt64(start_ns) AS start_ns, phase, cluster, day,
    position(_path, '/v1/days/') > 0 AS compacted
FROM {read}('{url}/v1/{days,raw}/cluster=*/day=*/*.parquet', 'Parquet', '
        record String, batch String, host_id String, host String, boot String, kernel String, cpu_model String,
        machine String, firmware Nullable(String), tuning String, version String, probe String, cpus String,
        cpu_count UInt32, hour_s UInt64, clock_ahead_s Nullable(Int32), kind Nullable(String),
        name Nullable(String), owner Nullable(String), count Nullable(UInt64), sum_ns Nullable(UInt64),
        max_ns Nullable(UInt64), measured_ns Nullable(UInt64), lost Nullable(UInt64), key Nullable(String),
        bucket Nullable(Int32), stall Nullable(UInt32), cpu Nullable(UInt32), start_ns Nullable(UInt64),
        phase Nullable(String), cluster String, day Date
    ')
SETTINGS use_hive_partitioning = 1;

-- Each row once: those of v1/days, and those of v1/raw that v1/days lacks.
CREATE OR REPLACE VIEW rollups AS
SELECT * EXCEPT (compacted) FROM rollup_files WHERE compacted
UNION ALL
SELECT fresh.* EXCEPT (compacted)
FROM (SELECT * FROM rollup_files WHERE NOT compacted) AS fresh
LEFT ANTI JOIN (
    SELECT DISTINCT cluster, day, batch FROM rollup_files WHERE compacted AND record = 'hour'
) AS packed
ON fresh.cluster = packed.cluster AND fresh.day = packed.day AND fresh.batch = packed.batch;

-- One row per host, group of CPUs and hour: how many stalls, how much time they took of how much measured time.
CREATE OR REPLACE VIEW hours AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    version, probe, clock_ahead_s, assumeNotNull(count) AS stalls, assumeNotNull(sum_ns) AS stolen_ns,
    assumeNotNull(max_ns) AS longest_ns, assumeNotNull(measured_ns) AS measured_ns, assumeNotNull(lost) AS lost
FROM rollups WHERE record = 'hour';

-- Who took the time of each hour: the 64 largest culprits, then one row '(others)' per kind.
CREATE OR REPLACE VIEW culprits AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    assumeNotNull(kind) AS kind, assumeNotNull(name) AS name, owner, assumeNotNull(count) AS parts,
    assumeNotNull(sum_ns) AS stolen_ns, assumeNotNull(max_ns) AS longest_ns
FROM rollups WHERE record = 'culprit';

-- How long stalls are ('stall') and parts of a kind ('part:KIND'). Bucket b holds those from 2^((b-1)/4) to
-- 2^(b/4) seconds, the latter included.
CREATE OR REPLACE VIEW buckets AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    assumeNotNull(key) AS key, assumeNotNull(bucket) AS bucket, assumeNotNull(count) AS entries
FROM rollups WHERE record = 'bucket';

-- The 8 longest stalls of each hour. `batch`, `cpus` and `stall` name one.
CREATE OR REPLACE VIEW stalls AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    batch, assumeNotNull(stall) AS stall, assumeNotNull(cpu) AS cpu, assumeNotNull(start_ns) AS start_ns,
    assumeNotNull(sum_ns) AS length_ns
FROM rollups WHERE record = 'stall';

-- Who took the time of each of those stalls.
CREATE OR REPLACE VIEW parts AS
SELECT host_id, host, cluster, day, boot, kernel, cpu_model, machine, firmware, tuning, cpus, cpu_count, hour,
    batch, assumeNotNull(stall) AS stall, assumeNotNull(kind) AS kind, assumeNotNull(name) AS name, owner, phase,
    assumeNotNull(sum_ns) AS stolen_ns
FROM rollups WHERE record = 'part';
