-- Copyright (c) 2026, durable.dbhost contributors
-- SPDX-License-Identifier: GPL-3.0-or-later
--
-- Count the events of xevents.sql by name, then remove the session. Its files stay in /var/opt/mssql/log until you delete
-- them.
ALTER EVENT SESSION commit_path ON SERVER STATE = STOP;
SELECT object_name, COUNT(*) AS events
FROM sys.fn_xe_file_target_read_file(N'/var/opt/mssql/log/commit_path*.xel', NULL, NULL, NULL)
GROUP BY object_name;
DROP EVENT SESSION commit_path ON SERVER;
