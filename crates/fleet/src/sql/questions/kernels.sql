-- Which share of the measured time is stolen with each kernel, among hosts of one CPU model and tuning?
SELECT cpu_model, tuning, kernel, count(DISTINCT host_id) AS hosts,
    sum(stolen_ns) AS stolen, sum(measured_ns) AS measured, sum(stolen_ns) / sum(measured_ns) AS share
FROM hours
GROUP BY cpu_model, tuning, kernel
ORDER BY cpu_model, tuning, kernel;
