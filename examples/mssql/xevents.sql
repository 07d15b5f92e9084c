-- Copyright (c) 2026, durable.dbhost contributors
-- SPDX-License-Identifier: GPL-3.0-or-later
--
-- Record the server's flushes, durable writes and checkpoints. Run this file, commits.sql, then xevents-stop.sql.
-- The server itself lists the names of the events, because releases differ.
DECLARE @events nvarchar(max) =
(
    SELECT STRING_AGG(CONVERT(nvarchar(max), CONCAT(N'ADD EVENT ', QUOTENAME(p.name), N'.', QUOTENAME(o.name))), N', ')
    FROM sys.dm_xe_objects AS o
    JOIN sys.dm_xe_packages AS p ON p.guid = o.package_guid
    WHERE o.object_type = N'event'
        AND (p.capabilities IS NULL OR p.capabilities & 1 = 0)
        AND (o.capabilities IS NULL OR o.capabilities & 1 = 0)
        AND (o.name LIKE N'flush%' OR o.name LIKE N'make[_]durable%' OR o.name LIKE N'checkpoint%')
);
IF @events IS NULL
    RAISERROR(N'this release has none of the events', 16, 1);
ELSE
BEGIN
    EXEC (N'CREATE EVENT SESSION commit_path ON SERVER ' + @events
        + N' ADD TARGET package0.event_file (SET filename = N''/var/opt/mssql/log/commit_path.xel'', max_file_size = 50,'
        + N' max_rollover_files = 2)');
    ALTER EVENT SESSION commit_path ON SERVER STATE = START;
END;
