import { expect, test } from 'bun:test'
import { BOOTSTRAP, MIGRATIONS as POSTGRES_MIGRATIONS } from '../../src/store/postgres/schema.ts'
import { MIGRATIONS } from '../../src/store/sqlite/format.ts'
import { logLines } from '../fault/server-log.ts'
import { queryAll, runSql } from '../store/sqlite/files.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { administer, makeDatabase as makePostgres, POSTGRES_SERVER, runScript } from '../support/postgres.ts'
import { lacks } from '../support/requirement.ts'
import { makeTokenLine } from '../support/token-lines.ts'
import { makeDatabase } from './support/database.ts'

/** The latest schema of each kind of database. */
const LATEST = {
  SQLite: MIGRATIONS.length,
  ...(!lacks(POSTGRES_SERVER) && { PostgreSQL: POSTGRES_MIGRATIONS.length }),
}
const SELECT = 'select version from plantstore.schema_version'

/** A database that an older version of this program has made, with a plant and a token. `run` runs a command on it. */
async function makeOlder(kind: string, version: number, hasRows = true) {
  await using stack = new AsyncDisposableStack()
  const { folder, database: path } = stack.use(makeDatabase())
  const rows = (schema: string, hash: string) => [
    `insert into ${schema}users (id, name, created_at_ms) values (1, 'me', 7)`,
    `insert into ${schema}plants (user_id, id, name) values (1, 1, 'Fern')`,
    `insert into ${schema}tokens (id, user_id, hash, scope, created_at_ms) values (1, 1, ${hash}, 'write', 7)`,
  ]
  const marks = ['application_id = 0x706c7374', `user_version = ${version}`, 'journal_mode = wal']
  const statements = [...MIGRATIONS.slice(0, version), ...marks.map((mark) => `pragma ${mark}`)]
  if (kind === 'SQLite') runSql(path, ...statements, ...(hasRows ? rows('', 'zeroblob(32)') : []))
  const postgres = kind === 'SQLite' ? undefined : stack.use(await makePostgres({ isEmpty: true }))
  const mark = `update plantstore.schema_version set version = ${version}`
  const script = [...BOOTSTRAP, ...POSTGRES_MIGRATIONS.slice(0, version).flat(), mark]
  const counters = 'update plantstore.counters set last_user_id = 1, last_token_id = 1'
  if (hasRows) script.push(...rows('plantstore.', `sha256('')`), counters)
  if (postgres !== undefined) await runScript(postgres.url, script.join(';'))
  const database = postgres?.url ?? path
  const made = stack.move()
  return {
    database,
    folder,
    run(command: string) {
      const option = command.startsWith('copy') ? [] : ['--database']
      return runPlantstore([...command.split(' '), ...option, database], { cwd: folder })
    },
    async schema() {
      if (postgres === undefined) return Number(queryAll(path, 'pragma user_version')[0]?.[0])
      return Number((await administer(postgres.url, (sql) => sql.unsafe(SELECT).values()))[0]?.[0])
    },
    [Symbol.asyncDispose]: () => made.disposeAsync(),
  }
}

const READERS = ['check', 'token list', 'user list', 'copy --to copy.db --snapshot --from']
const OLDER = Object.entries(LATEST).flatMap(([kind, latest]) =>
  Array.from({ length: latest - 1 }, (_, index) => ({ kind, version: index + 1, latest })),
)

test.each(OLDER)(
  'commands that only read leave a database on $kind with schema $version as it is, or refuse it',
  async ({ kind, version, latest }) => {
    await using made = await makeOlder(kind, version)
    const refusal = `has schema version ${version}: start the new server, which raises it to ${latest}.\n`
    for (const command of kind === 'SQLite'
      ? [...READERS, 'export', 'status', 'backup older.db', 'restore older.db --force']
      : READERS) {
      const { stdout, stderr, exitCode } = await made.run(command)

      const works = kind === 'SQLite' && /^(?:check|export|status|backup|restore)/.test(command)
      expect({ command, exitCode, isRefused: stderr.endsWith(refusal) }).toEqual({
        command,
        exitCode: works ? 0 : 3,
        isRefused: !works,
      })
      // It has no table for the record of a backup.
      expect(stderr).not.toContain('Warning')
      if (command === 'export') expect(stdout).toBe('{"user":"me","id":1,"name":"Fern"}\n')
    }
    expect(await made.schema()).toBe(version)
  },
)

const WRITERS = [
  ...['token create --user you', 'token import tokens', 'token rotate 1', 'token revoke 1', 'user block me'],
  ...['user unblock me', 'user delete me --yes', 'import /dev/null', 'copy --from new.db --to', 'serve'],
]
const RAISING = Object.entries(LATEST).flatMap(([kind, latest]) =>
  WRITERS.filter((command) => !command.startsWith(kind === 'SQLite' ? 'copy' : 'import')).map((command) => ({
    kind,
    latest,
    command,
  })),
)

test.each(RAISING)(
  '$command raises the schema of a database on $kind, and says so once',
  async ({ kind, latest, command }) => {
    await using made = await makeOlder(kind, 1, !command.startsWith('copy'))
    const sentence = `The schema of the database was raised from version 1 to ${latest}: older executables refuse it.`
    const lines: unknown[] = []

    if (command === 'serve') {
      const server = await serve(made.database)
      await server.end()
      lines.push(...logLines(server).map(({ level, msg }) => `${level === 'warn' ? 'Warning: ' : level}${msg}`))
    } else {
      await Bun.write(`${made.folder}/tokens`, `${makeTokenLine('you').line}\n`)
      await runPlantstore(['token', 'create', '--user', 'me', '--database', 'new.db'], { cwd: made.folder })
      const answers = [await made.run(command), await made.run(command)]
      expect(answers[0]?.exitCode).toBe(0)
      lines.push(...answers.flatMap(({ stderr }) => stderr.split('\n')))
    }

    expect(lines.filter((line) => String(line).includes('schema'))).toEqual([`Warning: ${sentence}`])
    expect(await made.schema()).toBe(latest)
  },
)
