-- Which interrupts and softirqs take more time on one kernel than on the others, per measured time?
WITH measured AS (
    SELECT kernel, sum(measured_ns) AS measured FROM hours GROUP BY kernel
),
taken AS (
    SELECT kernel, kind, name, sum(stolen_ns) AS stolen FROM culprits
    WHERE kind IN ('irq', 'softirq', 'timer', 'ipi') AND name <> '(others)'
    GROUP BY kernel, kind, name
),
rates AS (
    SELECT t.kernel AS kernel, t.kind AS kind, t.name AS name, t.stolen AS stolen, t.stolen / m.measured AS share
    FROM taken AS t JOIN measured AS m ON t.kernel = m.kernel
)
SELECT kind, name, kernel, stolen, share, share / min(share) OVER (PARTITION BY kind, name) AS times_the_best
FROM rates
ORDER BY times_the_best DESC, kind, name, kernel
LIMIT 20;
