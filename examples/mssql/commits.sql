-- Copyright (c) 2026, durable.dbhost contributors
-- SPDX-License-Identifier: GPL-3.0-or-later
--
-- 20,000 commits of one row, then a checkpoint, with the elapsed time. Run it with sqlcmd on a test server, once for each
-- setting, after a restart:
--   sqlcmd -S localhost -U sa -i commits.sql
-- It makes the database CommitTest in the default directories of the server and drops it at the end. It refuses to run if a
-- database of this name exists.
SET NOCOUNT ON;
IF DB_ID(N'CommitTest') IS NOT NULL
BEGIN
    RAISERROR(N'CommitTest exists: drop it or rename it first', 16, 1);
    SET NOEXEC ON;
END;
GO
CREATE DATABASE CommitTest;
GO
-- Sizes large enough that no file grows during the test: a growing file is flushed for another reason.
ALTER DATABASE CommitTest MODIFY FILE (NAME = CommitTest, SIZE = 512MB);
ALTER DATABASE CommitTest MODIFY FILE (NAME = CommitTest_log, SIZE = 512MB);
ALTER DATABASE CommitTest SET RECOVERY SIMPLE;
ALTER DATABASE CommitTest SET DELAYED_DURABILITY = DISABLED;
GO
USE CommitTest;
CREATE TABLE dbo.Rows (Id int IDENTITY PRIMARY KEY, Filler char(2000) NOT NULL DEFAULT 'x');
GO
DECLARE @start datetime2 = SYSDATETIME(), @row int = 0;
WHILE @row < 20000
BEGIN
    -- Without BEGIN TRANSACTION each INSERT is a commit.
    INSERT dbo.Rows DEFAULT VALUES;
    SET @row += 1;
END;
DECLARE @commits datetime2 = SYSDATETIME();
CHECKPOINT;
SELECT
    DATEDIFF(millisecond, @start, @commits) AS commits_ms,
    DATEDIFF(millisecond, @commits, SYSDATETIME()) AS checkpoint_ms;
GO
USE master;
DROP DATABASE CommitTest;
