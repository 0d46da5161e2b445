-- Culprits that appear after the first day, on two hosts or with a thousandth of a host's time.
WITH days AS (
    SELECT kind, name, owner, host_id, min(day) AS first_day, sum(stolen_ns) AS stolen
    FROM culprits
    WHERE day BETWEEN DATE '{from}' AND DATE '{to}' AND name <> '(others)'
    GROUP BY kind, name, owner, host_id
),
fresh AS (
    SELECT kind, name, owner, min(first_day) AS first_day, count(*) AS hosts, sum(stolen) AS stolen,
        array_agg(host_id) AS ids
    FROM days
    GROUP BY kind, name, owner
    HAVING min(first_day) > (SELECT min(day) FROM hours WHERE day BETWEEN DATE '{from}' AND DATE '{to}')
),
measured AS (
    SELECT f.kind, f.name, f.owner, sum(h.measured_ns) AS measured
    FROM fresh AS f, hours AS h
    WHERE h.day BETWEEN f.first_day AND DATE '{to}' AND list_contains(f.ids, h.host_id)
        AND (f.hosts > 1 OR f.stolen > 1000000000)
    GROUP BY f.kind, f.name, f.owner
)
SELECT f.kind, f.name, f.owner, strftime(f.first_day, '%Y-%m-%d') AS first_day, f.hosts,
    CAST(f.stolen AS DOUBLE) / 1e9 AS stolen_s, CAST(m.measured AS DOUBLE) / 1e9 AS measured_s
FROM fresh AS f
JOIN measured AS m ON f.kind = m.kind AND f.name = m.name AND f.owner IS NOT DISTINCT FROM m.owner
WHERE f.hosts > 1 OR f.stolen > m.measured / 1000
ORDER BY f.stolen DESC
LIMIT 200
