import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import type { EngineEvent } from '../../../src/engine/observer.ts'
import { checkpoints, KEPT_WAL_BYTES, LONG_WAL_BYTES } from '../../../src/engine/sqlite/checkpoints.ts'
import { makeDatabaseFolder, makeWithWriter, openWithUser, SHM, WAL } from '../../store/sqlite/files.ts'
import { until } from '../../support/until.ts'

/** The WAL grows less than this from one checkpoint to the next, the last group included. */
const STEP_BYTES = KEPT_WAL_BYTES
const NAME = 'x'.repeat(60_000)
const AT_ONCE = 16
const MIB = 1024 ** 2

/** A store with its events. */
async function open() {
  const events: EngineEvent[] = []
  const opened = await openWithUser({ isServer: true, onEvent: (event) => events.push(event) })
  const { store, user, path } = opened
  let created = 0
  return {
    ...opened,
    events,
    walBytes: () => statSync(path + WAL).size,
    /** Creates plants until the condition holds. */
    async createUntil(isDone: () => boolean): Promise<void> {
      const create = async () => {
        if (isDone()) return true
        const ids = Array.from({ length: AT_ONCE }, () => BigInt(created++))
        await Promise.all(ids.map((id) => store.createPlant(user, { id, name: NAME })))
        return false
      }
      // A turn of the event loop as between two requests.
      await until('there are enough plants', create, { lookMs: 0 })
    },
  }
}

/** Holds the lock of a checkpoint, as a program does that is stopped in one (https://sqlite.org/walformat.html#wal_locks). */
async function lockCheckpoints(path: string) {
  const script = `
    const lock = Buffer.alloc(32)
    lock.writeInt16LE(1, 0) // F_WRLCK
    lock.writeBigInt64LE(121n, 8)
    lock.writeBigInt64LE(1n, 16)
    const file = require('node:fs').openSync(${JSON.stringify(path + SHM)}, 'r+')
    const fcntl = { args: ['int', 'int', 'ptr'], returns: 'int' }
    const F_SETLK = 6
    console.log(require('bun:ffi').dlopen('libc.so.6', { fcntl }).symbols.fcntl(file, F_SETLK, lock))
    setInterval(() => {}, 1e6)`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
  const { value } = await child.stdout.getReader().read()
  expect(new TextDecoder().decode(value)).toBe('0\n')
  return child
}

const sizes = { walBytes: expect.any(Number) }
const WARNING: EngineEvent = { level: 'warn', message: expect.stringContaining('end that program'), sizes }

// test/fault/snapshot.test.ts tests the warnings while a program reads, and the length of the WAL after it.
describe('the store of a server', () => {
  test('tells of a checkpoint of another program that stops, and counts none of its own as whole until that has ended', async () => {
    await using opened = await open()
    const { store, path, events, walBytes } = opened
    await opened.createUntil(() => walBytes() > MIB)
    await using other = await lockCheckpoints(path)
    const { checkpointedAtS } = await store.measure(Date.now())

    await opened.createUntil(() => walBytes() >= LONG_WAL_BYTES + STEP_BYTES)
    const meanwhile = await store.measure(Date.now())
    other.kill()
    await other.exited
    const heldBytes = walBytes()
    await opened.createUntil(() => walBytes() < heldBytes)
    const after = await store.measure(Date.now())

    expect(events[0]).toEqual(WARNING)
    expect(meanwhile.checkpointedAtS).toBe(checkpointedAtS)
    expect(after.checkpointedAtS).toBeGreaterThan(checkpointedAtS ?? 0)
  })

  test('keeps the WAL short and tells nothing without a long reader, however much it writes', async () => {
    await using opened = await open()
    const { events, walBytes } = opened
    let writtenBytes = 0
    let longestBytes = 0

    await opened.createUntil(() => {
      longestBytes = Math.max(longestBytes, walBytes())
      writtenBytes += AT_ONCE * NAME.length
      return writtenBytes > 2 * LONG_WAL_BYTES
    })

    expect(events).toEqual([])
    expect(longestBytes).toBeGreaterThan(0)
    expect(longestBytes).toBeLessThanOrEqual(KEPT_WAL_BYTES)
  })
})

test('a store tells nothing of readers that come and go, however long they make the WAL', () => {
  using files = makeDatabaseFolder()
  using writer = makeWithWriter(files.path)
  writer.run('create table texts (text text)')
  const wal = checkpoints(writer, (error) => error)
  const beginToRead = () => {
    const reader = new Database(files.path, { readonly: true })
    reader.run('begin')
    reader.run('select * from texts limit 1')
    return reader
  }
  let reader = beginToRead()

  while (statSync(files.path + WAL).size < LONG_WAL_BYTES + 2 * STEP_BYTES) {
    writer.run('insert into texts values (zeroblob(?1))', [2 * MIB])
    expect(wal.runIfDue()).toBeUndefined()
    const next = beginToRead()
    reader.close(true)
    reader = next
  }
  reader.close(true)
})
