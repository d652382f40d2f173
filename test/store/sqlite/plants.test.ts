import type { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { migrate } from '../../../src/engine/sqlite/migrate.ts'
import { PLANT_FORMAT } from '../../../src/store/sqlite/format.ts'
import { openQuota } from '../../../src/store/sqlite/writing/quota.ts'
import { createWrites } from '../../../src/store/sqlite/writing/writes.ts'
import { makeDatabaseFolder, makeWithWriter } from './files.ts'

test.each([
  ['tries first what the last one did', undefined, ['update insert', 'insert', 'insert update', 'update']],
  ['replaces first with a quota', 9, ['update insert', 'update insert', 'update', 'update']],
])('a put %s', (_, quotaPlants, statements) => {
  using files = makeDatabaseFolder()
  using writer = makeWithWriter(files.path)
  migrate(writer, files.path, PLANT_FORMAT)
  writer.run("insert into users (id, name, created_at_ms) values (1, 'me', 0)")
  const run: (string | undefined)[] = []
  const quota = quotaPlants === undefined ? undefined : openQuota(writer, quotaPlants)
  const { putPlant } = createWrites(recordingRuns(writer, run), quota)

  // Two puts that make a plant, and two that replace one.
  const ran = ['1', '2', '1', '2'].map((id) => {
    putPlant(1, id, ['Fern', null], 'any')
    return run.splice(0).join(' ')
  })

  expect(ran).toEqual(statements)
})

/** A connection whose prepared statements record their first word when they run. */
function recordingRuns(writer: Database, words: (string | undefined)[]): Database {
  const prepare = (sql: string) => {
    const statement = writer.prepare(sql)
    const run = (...values: []) => {
      words.push(sql.split(' ', 1)[0])
      return statement.run(...values)
    }
    return new Proxy(statement, { get: (target, name) => (name === 'run' ? run : Reflect.get(target, name)) })
  }
  return new Proxy(writer, { get: (target, name) => (name === 'prepare' ? prepare : Reflect.get(target, name)) })
}
