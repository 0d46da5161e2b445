-- In which hours did a host lose kernel records, so that its culprits are uncertain?
SELECT host_id, host, day, hour, cpus, lost
FROM hours
WHERE lost > 0
ORDER BY lost DESC, host_id, hour, cpus
LIMIT 50;
