-- Which units, pods and control groups took most time on a day, and on how many hosts?
SELECT owner, count(DISTINCT host_id) AS hosts, sum(parts) AS all_parts, sum(stolen_ns) AS stolen
FROM culprits
WHERE owner IS NOT NULL AND day = DATE '{day}'
GROUP BY owner
ORDER BY stolen DESC, owner
LIMIT 20;
