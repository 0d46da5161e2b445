-- Which culprits appear since a day that no host had before?
SELECT kind, name, coalesce(owner, '') AS its_owner, count(DISTINCT host_id) AS hosts,
    sum(stolen_ns) AS stolen, min(day) AS first_day
FROM culprits
WHERE name <> '(others)'
GROUP BY kind, name, coalesce(owner, '')
HAVING min(day) >= DATE '{day}'
ORDER BY stolen DESC, kind, name, its_owner
LIMIT 20;
