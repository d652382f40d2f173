-- The latest changes of tokens and users, the last one first: for each the new `tokens_stamp`, the user, and a semicolon.
-- Executables that do not know this column change the stamp alone. Then the text does not begin with the stamp.
alter table plantstore.counters add column if not exists token_changes text not null default '';
