SELECT host_id, kernel, tuning, kind, name, CAST(sum(stolen_ns) AS DOUBLE) / 1e9 AS stolen_s
FROM culprits
WHERE day BETWEEN DATE '{from}' AND DATE '{to}'
GROUP BY host_id, kernel, tuning, kind, name
HAVING sum(stolen_ns) > 0
