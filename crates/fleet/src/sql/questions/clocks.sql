-- Which hosts changed their name, or had a clock that was wrong by more than a minute?
SELECT host_id, count(DISTINCT host) AS names, min(host) AS one_name, max(host) AS other_name,
    min(coalesce(clock_ahead_s, 0)) AS least_ahead_s, max(coalesce(clock_ahead_s, 0)) AS most_ahead_s
FROM hours
GROUP BY host_id
HAVING count(DISTINCT host) > 1 OR max(coalesce(clock_ahead_s, 0)) > 60 OR min(coalesce(clock_ahead_s, 0)) < -60
ORDER BY host_id;
