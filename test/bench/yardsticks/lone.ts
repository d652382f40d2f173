/**
 * The yardstick for creates of one client: transactions of one insert and one sync, one after the other. Usage:
 * `bun lone.ts DATABASE FIRST_ID SECONDS`. Prints the transactions per second after a second of warm-up.
 */
import { Database } from 'bun:sqlite'

const WARM_UP_MS = 1000

const [path = '', firstId = '0', seconds = '0'] = process.argv.slice(2)
const db = new Database(path, { readwrite: true })
db.run('pragma journal_mode = wal')
db.run('pragma synchronous = full')
db.run('pragma foreign_keys = on')
const insert = db.prepare<unknown, [number, number, string, string]>(
  'insert into plants (user_id, id, name, tag) values (?1, ?2, ?3, ?4) on conflict do nothing',
)

const USER_ID = 1
let id = Number(firstId)
insertFor(WARM_UP_MS)
console.log(insertFor(Number(seconds) * 1000))
db.close(true)

/** Inserts for some seconds. Returns the transactions per second. */
function insertFor(durationMs: number): number {
  const startMs = performance.now()
  const startId = id
  let nowMs = startMs
  while (nowMs - startMs < durationMs) {
    if (insert.run(USER_ID, id, `Monstera deliciosa ${id}`, 'evergreen').changes !== 1)
      throw new Error(`${id} is taken`)
    id += 1
    nowMs = performance.now()
  }
  return ((id - startId) * 1000) / (nowMs - startMs)
}
