-- How long are the longest stalls of each cluster: below which length are 99.9 % of a day's?
WITH per_bucket AS (
    SELECT cluster, bucket, sum(entries) AS stalls FROM buckets
    WHERE key = 'stall' AND day = DATE '{day}'
    GROUP BY cluster, bucket
),
below AS (
    SELECT cluster, bucket,
        sum(stalls) OVER (PARTITION BY cluster ORDER BY bucket) AS up_to_here,
        sum(stalls) OVER (PARTITION BY cluster) AS of_all
    FROM per_bucket
)
SELECT cluster, max(of_all) AS stalls, min(bucket) AS p999_bucket, power(2, min(bucket) / 4.0) AS p999_seconds
FROM below
WHERE up_to_here * 1000 >= of_all * 999
GROUP BY cluster
ORDER BY cluster;
