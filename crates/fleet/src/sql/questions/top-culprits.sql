-- Who took most time on a day?
SELECT kind, name, count(DISTINCT host_id) AS hosts, sum(parts) AS all_parts, sum(stolen_ns) AS stolen,
    max(longest_ns) AS longest
FROM culprits
WHERE day = DATE '{day}'
GROUP BY kind, name
ORDER BY stolen DESC, kind, name
LIMIT 20;
