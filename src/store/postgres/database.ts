// Tested in test/cli/postgres.test.ts.
import { describeAddress, isLocal, type PostgresAddress } from '../../database-url.ts'
import { misused } from '../../error.ts'
import type { NamedDatabase, OpenOptions } from '../database.ts'
import type { ConnectionOptions } from './driver.ts'

/** The database at this address. Its driver is loaded when it is first used. */
export const postgresDatabase = (connection: ConnectionOptions): NamedDatabase => ({
  location: describeAddress(connection.address),
  repairAdvice:
    'End all servers that use the database, then restore a backup of it: see docs/how-to/backup-restore.md.',

  async open(onFailure, options = {}) {
    const { openPostgresStore } = await import('./store.ts')
    warnOfPlainText(connection.address, options)
    return openPostgresStore(connection, onFailure, options)
  },

  async check(options) {
    const store = await this.open(() => {}, { ...options, mustExist: true })
    return store.checkIntegrity().finally(store.close)
  },

  async fileTools() {
    throw misused('This works on a database file only: use pg_dump and pg_restore for a PostgreSQL database.')
  },

  async copyTools(options) {
    const { fillPostgres, readPostgres } = await import('./tools/copy.ts')
    warnOfPlainText(connection.address, options)
    // Few statements are sent more than once.
    const unprepared = { ...connection, preparesNothing: true }
    return {
      read: (use) => readPostgres(unprepared, options.isSnapshot === true, use),
      fill: (fill) => fillPostgres(unprepared, options, fill),
    }
  },
})

/** Warns of a connection to another machine that others could read. Only verify-full proves that it leads to the right server. */
function warnOfPlainText(address: PostgresAddress, { onEvent }: Pick<OpenOptions, 'onEvent'>): void {
  const { sslMode } = address
  if (isLocal(address) || (sslMode !== 'disable' && sslMode !== 'prefer')) return
  const message = `plants and tokens may go to ${describeAddress(address)} in plain text: use sslmode=verify-full`
  onEvent?.({ level: 'warn', message, sizes: {} })
}
