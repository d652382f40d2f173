-- The time since which servers refuse all tokens of the user.
alter table plantstore.users add column if not exists blocked_at_ms int8;
-- The identifier of the token that replaces this one. It has no foreign key, which would make a copy depend on the order of rows.
alter table plantstore.tokens add column if not exists replaced_by int8;
