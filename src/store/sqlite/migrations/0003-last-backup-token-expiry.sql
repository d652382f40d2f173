-- When the latest backup of this database began, and how large it is. There is no row before the first backup, and no
-- backup or copy of the database has the row.
create table last_backup (
  id integer primary key check (id = 1),
  at_ms integer not null,
  bytes integer not null
) strict;

-- The metrics count the tokens that expire soon. This finds them without reading the others.
create index tokens_by_expiry on tokens (expires_at_ms) where revoked_at_ms is null and replaced_by is null;
