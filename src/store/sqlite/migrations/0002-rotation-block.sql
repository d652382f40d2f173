-- The time since which servers refuse all tokens of the user.
alter table users add column blocked_at_ms integer;
-- The identifier of the token that replaces this one. It has no foreign key, which would make a copy depend on the order of rows.
alter table tokens add column replaced_by integer;
