import { statfs } from 'node:fs/promises'
import { EXPIRES_SOON_MS, EXPIRING_TOKENS_MAX, type Health } from '../../domain/store.ts'
import type { Connections } from '../../engine/sqlite/connections.ts'
import { findAndMark } from '../../engine/sqlite/files/damage-mark.ts'
import { sizeOf } from '../../engine/sqlite/files/file-system.ts'
import { withKnownOutcome } from '../../error.ts'
import { PLANT_FORMAT } from './format.ts'
import type { Writes } from './writing/writes.ts'

export function health({ path, reader, read, checkpointedAtMs, writer: { write, load } }: Connections<Writes>) {
  const selectOne = reader.prepare('select 1 from users limit 1')
  const measure = reader.prepare<unknown, [number, number]>(
    `select coalesce(max(at_ms), 0), coalesce(max(bytes), 0), (select count(*) from (
       select 1 from tokens where revoked_at_ms is null and replaced_by is null
         and expires_at_ms > ?1 and expires_at_ms <= ?2 limit ${EXPIRING_TOKENS_MAX}))
     from last_backup`,
  )

  return {
    async checkReady() {
      await read(() => selectOne.values())
      // It writes and syncs a page, and changes nothing.
      await write(['rewriteApplicationId']).catch(withKnownOutcome)
    },

    checkIntegrity: () => read(() => findAndMark(reader, path, PLANT_FORMAT)),

    load,

    async measure(nowMs) {
      const [row = []] = await read(() => measure.values(nowMs, nowMs + EXPIRES_SOON_MS))
      const [lastBackupAtMs = 0, lastBackupBytes = 0, expiringTokens = 0] = row.map(Number)
      const { bsize, blocks, bavail } = await statfs(path)
      return {
        databaseBytes: sizeOf(path),
        walBytes: sizeOf(`${path}-wal`),
        diskBytes: blocks * bsize,
        diskFreeBytes: bavail * bsize,
        checkpointedAtS: checkpointedAtMs() / 1000,
        lastBackupAtS: lastBackupAtMs / 1000,
        lastBackupBytes,
        expiringTokens,
      }
    },
  } satisfies Health
}
