SELECT host_id, max_by(host, hour) AS host, max_by(cluster, hour) AS cluster, cpu_model, machine, kernel, tuning,
    count(DISTINCT hour) AS hours, CAST(sum(measured_ns) AS DOUBLE) / 1e9 AS measured_s, CAST(sum(stolen_ns) AS DOUBLE) / 1e9 AS stolen_s,
    CAST(max(longest_ns) AS DOUBLE) / 1e9 AS longest_s, CAST(sum(lost) AS BIGINT) AS lost
FROM hours
WHERE day BETWEEN DATE '{from}' AND DATE '{to}' AND measured_ns > 0
GROUP BY host_id, cpu_model, machine, kernel, tuning
ORDER BY host_id, kernel, tuning
