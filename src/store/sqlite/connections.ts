import type { Database } from 'bun:sqlite'
import type { Plants, Tokens } from '../../domain/store.ts'
import type { Connections as EngineConnections } from '../../engine/sqlite/connections.ts'
import { throwFromEngine } from '../errors.ts'
import type { WriteName, Writes } from './writing/writes.ts'

/** The connections of a thread to its store. What they reject with is an `AppError`, unless it is a bug. */
export interface Connections extends Pick<EngineConnections<Writes>, 'path' | 'checkpointedAtMs'> {
  readonly reader: Database
  read<T>(work: () => T): Promise<T>
  write<Name extends WriteName>(call: readonly [Name, ...Parameters<Writes[Name]>]): Promise<ReturnType<Writes[Name]>>
  /** Brings the WAL into the database and empties it, unless another process reads it. */
  emptyWal(): Promise<void>
  readonly load: EngineConnections<Writes>['writer']['load']
  readonly versions: Pick<Plants & Tokens, 'plantsVersion' | 'isSameUpTo' | 'tokensVersion' | 'hasSameTokens'>
}

export const toOurs = ({ writer, read, versions, ...connections }: EngineConnections<Writes>): Connections => ({
  ...connections,
  read: (work) => read(work).catch(throwFromEngine),
  write: <Name extends WriteName>(call: readonly [Name, ...Parameters<Writes[Name]>]) =>
    writer.write<Name>(call).catch(throwFromEngine),
  emptyWal: () => writer.emptyWal().catch(throwFromEngine),
  load: writer.load,
  versions: {
    plantsVersion: versions.owner,
    isSameUpTo: versions.isSameUpTo,
    tokensVersion: versions.shared,
    hasSameTokens: (_, since) => since === versions.shared(),
  },
})
