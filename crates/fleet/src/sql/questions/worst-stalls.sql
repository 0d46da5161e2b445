-- Which are the longest stalls of a host on a day, and who took their time?
WITH longest AS (
    SELECT batch, cpus, stall, cpu, start_ns, length_ns FROM stalls
    WHERE day = DATE '{day}' AND host_id = '{host}'
    ORDER BY length_ns DESC, start_ns, cpu
    LIMIT 5
),
taken AS (
    SELECT batch, cpus, stall, kind, name, coalesce(owner, '') AS its_owner, coalesce(phase, '') AS its_phase,
        stolen_ns
    FROM parts
    WHERE day = DATE '{day}' AND host_id = '{host}'
)
SELECT l.start_ns AS start_ns, l.cpu AS cpu, l.length_ns AS length_ns,
    t.kind AS kind, t.name AS name, t.its_owner AS its_owner, t.its_phase AS its_phase, t.stolen_ns AS stolen_ns
FROM longest AS l
JOIN taken AS t ON l.batch = t.batch AND l.cpus = t.cpus AND l.stall = t.stall
ORDER BY length_ns DESC, start_ns, cpu, stolen_ns DESC, kind, name, its_owner, its_phase;
