-- The metrics count the tokens that expire soon. This finds them without reading the others.
create index if not exists tokens_by_expiry on plantstore.tokens (expires_at_ms)
  where revoked_at_ms is null and replaced_by is null;
