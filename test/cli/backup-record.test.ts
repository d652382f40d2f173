import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { holdTransaction } from '../fault/foreign-transaction.ts'
import { queryAll } from '../store/sqlite/files.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { scrape } from '../support/metrics.ts'
import { serveDatabase } from './support/database.ts'

const startMetered = () => serveDatabase(['--metrics-listen', '127.0.0.1:0'])

/** What the metrics of a server say of the latest backup. */
async function backupIn(server: { stdout(): string }) {
  const all = await scrape(server)
  return {
    atS: all.plantstore_last_backup_timestamp_seconds ?? Number.NaN,
    bytes: all.plantstore_last_backup_size_bytes,
  }
}

const NONE = { atS: 0, bytes: 0 }

describe.concurrent('the metrics of a server', () => {
  test('show the time and the size of the latest backup, however it was made', async () => {
    await using service = await startMetered()
    const { server, folder, run } = service
    const [file, backups] = [join(folder, 'plants.db'), join(folder, 'backups')]
    mkdirSync(backups)
    const found = [await backupIn(server)]
    const times = [Date.now() / 1000]
    for (const args of [[file], ['--dir', backups, '--keep', '1'], ['-']]) {
      const { exitCode } = await run('backup', ...args)
      expect(exitCode).toBe(0)
      found.push(await backupIn(server))
      times.push(Date.now() / 1000)
    }

    expect(found[0]).toEqual(NONE)
    for (const [index, { atS, bytes }] of found.slice(1).entries()) {
      expect(atS).toBeWithin(times[index] ?? 0, times[index + 1] ?? 0)
      expect(bytes).toBe(statSync(file).size)
    }
  })

  test('show a backup whose path could not be printed, and --keep counts it', async () => {
    await using service = await startMetered()
    const { server, folder, database } = service
    const backups = join(folder, 'backups')
    mkdirSync(backups)
    const args = ['backup', '--dir', backups, '--keep', '1', '--database', database]
    const run = () => runPlantstore(args, { under: ['sh', '-c', '"$@" > /dev/full', 'sh'] })
    const first = await run()
    const found = await backupIn(server)
    const second = await run()

    expect([first.exitCode, second.exitCode]).toEqual([1, 1])
    expect(found).not.toEqual(NONE)
    expect((await backupIn(server)).atS).toBeGreaterThan(found.atS)
    expect(readdirSync(backups)).toHaveLength(1)
  })

  test('show the backup before one that failed', async () => {
    await using service = await startMetered()
    const { server, folder, run } = service
    const file = join(folder, 'plants.db')
    await run('backup', file)
    const before = await backupIn(server)
    const again = await run('backup', file)

    expect(again.exitCode).toBe(1)
    expect(before).not.toEqual(NONE)
    expect(await backupIn(server)).toEqual(before)
  })

  test('show no backup of a database that was restored or copied, because nobody has backed it up', async () => {
    await using service = await startMetered()
    const { folder, run, database } = service
    const [first, second, restored, copied] = ['first', 'second', 'restored', 'copied'].map((name) =>
      join(folder, `${name}.db`),
    ) as [string, string, string, string]
    await run('backup', first)
    // The database has a record now.
    await run('backup', second)
    await runPlantstore(['restore', second, '--database', restored])
    await runPlantstore(['copy', '--snapshot', '--from', database, '--to', copied])

    for (const path of [restored, copied]) {
      await using server = await serve(path, ['--metrics-listen', '127.0.0.1:0'])
      expect(await backupIn(server)).toEqual(NONE)
    }
    expect(queryAll(database, 'select count(*) from last_backup')).toEqual([[1n]])
  })

  test('show the backup before, with a warning of the command, if another process keeps the database locked', async () => {
    await using service = await startMetered()
    const { server, folder, run, database } = service
    const file = join(folder, 'plants.db')
    await using held = await holdTransaction(database, 'begin immediate')
    const backup = await run('backup', file)
    await held.release()

    expect(backup).toEqual({
      stdout: `${file}\n`,
      stderr: expect.stringMatching(
        /\nWarning: the backup is complete, but the database could not record it for the metrics: .*locked.*\.\n$/,
      ),
      exitCode: 0,
    })
    expect(await backupIn(server)).toEqual(NONE)
  })
})
