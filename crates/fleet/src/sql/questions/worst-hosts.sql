-- Which hosts lose most against their twins, the hosts of the same hardware, kernel and tuning?
WITH per_host AS (
    SELECT cpu_model, machine, kernel, tuning, host_id, max(host) AS name,
        sum(stolen_ns) AS stolen, sum(measured_ns) AS measured
    FROM hours WHERE day = DATE '{day}'
    GROUP BY cpu_model, machine, kernel, tuning, host_id
),
twins AS (
    SELECT cpu_model, machine, kernel, tuning, count(*) AS hosts,
        sum(stolen) AS all_stolen, sum(measured) AS all_measured
    FROM per_host
    GROUP BY cpu_model, machine, kernel, tuning
)
SELECT h.host_id AS host_id, h.name AS name, h.stolen AS stolen, h.measured AS measured, t.hosts - 1 AS twins,
    (h.stolen / h.measured) / ((t.all_stolen - h.stolen) / (t.all_measured - h.measured)) AS times_its_twins
FROM per_host AS h
JOIN twins AS t
ON h.cpu_model = t.cpu_model AND h.machine = t.machine AND h.kernel = t.kernel AND h.tuning = t.tuning
WHERE t.hosts >= 4
ORDER BY times_its_twins DESC, host_id
LIMIT 10;
