-- How does the stolen share change over the hours of a day?
SELECT hour, count(DISTINCT host_id) AS hosts, sum(stolen_ns) AS stolen, sum(stolen_ns) / sum(measured_ns) AS share
FROM hours
WHERE day = DATE '{day}'
GROUP BY hour
ORDER BY hour;
