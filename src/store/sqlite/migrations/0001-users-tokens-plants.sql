-- Times are milliseconds since 1970-01-01 UTC. Identifiers of users and tokens are never given twice, so that whoever
-- still holds one of a deleted user can never mean another.
create table users (
  id integer primary key autoincrement,
  name text not null unique,
  created_at_ms integer not null
) strict;

create table tokens (
  id integer primary key autoincrement,
  user_id integer not null references users (id),
  hash blob not null unique check (length(hash) = 32),
  scope text not null check (scope in ('read', 'write')),
  label text,
  created_at_ms integer not null,
  expires_at_ms integer,
  revoked_at_ms integer,
  last_used_at_ms integer
) strict;

create index tokens_by_user on tokens (user_id);

create table plants (
  user_id integer not null references users (id),
  id integer not null,
  name text not null,
  tag text,
  primary key (user_id, id)
) strict, without rowid;
