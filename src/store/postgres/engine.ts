import { describeAddress, type PostgresAddress } from '../../domain/database-url.ts'
import { AppError } from '../../domain/error.ts'
import type { Engine } from '../engine.ts'
import { RESTORE_SERVER } from '../errors.ts'

/** The database at this address. Its driver is loaded when it is first used. */
export const postgresEngine = (address: PostgresAddress): Engine => ({
  location: describeAddress(address),
  repairAdvice: RESTORE_SERVER,

  async open(onFailure, options) {
    const { openPostgresStore } = await import('./store.ts')
    return openPostgresStore(address, onFailure, options)
  },

  exposedFiles: () => [],

  async fileTools() {
    throw new AppError('misused', {
      message: 'This works on a database file only: use pg_dump and pg_restore for a PostgreSQL database.',
    })
  },

  async copyTools({ passwordFile, onEvent }) {
    const { plainTextWarning } = await import('./store.ts')
    const { readPostgres } = await import('./tools/copy-source.ts')
    const { fillPostgres } = await import('./tools/copy-target.ts')
    const warning = plainTextWarning(address)
    if (warning !== undefined) onEvent(warning)
    // Few statements are sent more than once.
    const connection = { address, passwordFile, prepares: false }
    return {
      read: (options, use) => readPostgres(connection, options, use),
      fill: (fill) => fillPostgres(connection, fill),
    }
  },
})
