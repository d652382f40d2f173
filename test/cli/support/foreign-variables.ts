/** Variables that programs for PostgreSQL listen to. */
export const FOREIGN_VARIABLES = {
  PGDATABASE: 'nowhere',
  PGHOST: '192.0.2.1',
  PGPORT: '1',
  PGUSER: 'nobody',
  PGPASSWORD: 'wrong',
  PGSSLMODE: 'verify-full',
  PGOPTIONS: '-c default_transaction_read_only=on',
  PGCHANNELBINDING: 'require',
  PGAPPNAME: 'other',
  DATABASE_URL: 'postgres://nobody:wrong@192.0.2.1:1/nowhere?sslmode=require',
  POSTGRES_URL: 'postgres://nobody:wrong@192.0.2.1:1/nowhere',
  TLS_DATABASE_URL: 'postgres://nobody:wrong@192.0.2.1:1/nowhere',
}
