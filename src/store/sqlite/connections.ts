// Tested in test/store/sqlite/contract.test.ts.
import type { Tokens } from '../../domain/store.ts'
import type { Connections as EngineConnections } from '../../engine/sqlite/connections.ts'
import { throwFromEngine } from '../errors.ts'
import type { WriteName, Writes } from './writing/writes.ts'

export type Connections = ReturnType<typeof toOurs>

/** The connections of a thread to its store, which reject with an `AppError`, unless it is a bug. */
export const toOurs = ({ writer, read, versions, close, ...connections }: EngineConnections<Writes>) => ({
  ...connections,
  load: writer.load,
  read: <T>(work: () => T) => read(work).catch(throwFromEngine),
  write: <Name extends WriteName>(call: readonly [Name, ...Parameters<Writes[Name]>]) =>
    writer.write<Name>(call).catch(throwFromEngine),
  /** Brings the WAL into the database and empties it, unless another process reads it. */
  emptyWal: () => writer.emptyWal().catch(throwFromEngine),
  versions,
  hasSameTokens: ((_, since) => since === versions.shared()) satisfies Tokens['hasSameTokens'],
  close: () => close().catch(throwFromEngine),
})
