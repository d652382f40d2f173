-- Times are milliseconds since 1970-01-01 UTC. Identifiers of users and tokens are never used twice: a process that holds the
-- identifier of a deleted user can never act for another user. This table counts them, not a sequence. Every change of a
-- token or a user stores a new random `tokens_stamp`.
create table if not exists plantstore.counters (
  id int8 primary key check (id = 1),
  last_user_id int8 not null,
  last_token_id int8 not null,
  tokens_stamp int8 not null
);

insert into plantstore.counters (id, last_user_id, last_token_id, tokens_stamp) values (1, 0, 0, 0)
on conflict do nothing;

create table if not exists plantstore.users (
  id int8 primary key,
  name text not null unique,
  created_at_ms int8 not null
);

create table if not exists plantstore.tokens (
  id int8 primary key,
  user_id int8 not null references plantstore.users (id),
  hash bytea not null unique check (length(hash) = 32),
  scope text not null check (scope in ('read', 'write')),
  label text,
  created_at_ms int8 not null,
  expires_at_ms int8,
  revoked_at_ms int8,
  last_used_at_ms int8
);

create index if not exists tokens_by_user on plantstore.tokens (user_id);

create table if not exists plantstore.plants (
  user_id int8 not null references plantstore.users (id),
  id int8 not null,
  name text not null,
  tag text,
  primary key (user_id, id)
);

-- The ledger: a row per process and kind of write, with the number of groups that it has written and the plants that the
-- last group refused, numbered from 1, or from -1 if the user does not exist. A group is written only if it is the next one of
-- an open writer. So the row tells the outcome of a group whose connection was lost before the answer.
create table if not exists plantstore.writers (
  id text primary key,
  groups int8 not null,
  refused int8[],
  is_closed boolean not null,
  opened_at_ms int8 not null
);
