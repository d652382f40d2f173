import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { yamlInContrib } from '../../support/docs.ts'
import { makeFolder } from '../../support/folder.ts'
import { makeDatabase, POSTGRES_SERVER } from '../../support/postgres.ts'
import { runProgram } from '../../support/program.ts'
import { lacks, program } from '../../support/requirement.ts'
import { runWell } from '../run.ts'

const [, cronJob] = await yamlInContrib('contrib/kubernetes/postgres/backup.yaml')
const [{ command }] = cronJob.spec.jobTemplate.spec.template.spec.containers

test.skipIf(lacks(POSTGRES_SERVER, program('pg_dump')))(
  'the CronJob for PostgreSQL makes a dump, keeps the latest 14, and fails without a database',
  async () => {
    using folder = makeFolder()
    await using database = await makeDatabase()
    const backups = join(folder.path, 'backups')
    const secrets = join(folder.path, 'secrets')
    mkdirSync(backups)
    await Bun.write(join(secrets, 'password'), 'secret\n')
    const old = Array.from({ length: 14 }, (_, day) => `plantstore-2026-01-${day + 10}T03-00-00Z.dump`)
    for (const name of [...old, 'plantstore-2026-01-09T03-00-00Z.dump.part']) await Bun.write(join(backups, name), '')
    const inFolder = command.map((text: string) =>
      text.replaceAll('/backups', backups).replaceAll('/run/secrets/plantstore', secrets),
    )
    const dump = (url: string) => runProgram(inFolder, { env: { ...process.env, PLANTSTORE_DATABASE: url } })

    const { exitCode, stdout } = await dump(database.url)

    expect({ exitCode, names: readdirSync(backups).sort() }).toEqual({
      exitCode: 0,
      names: [...old.slice(1), stdout.trim().split('/').at(-1) ?? ''],
    })
    expect(await runWell(['pg_restore', '--list', stdout.trim()])).toContain('TABLE DATA plantstore plants')
    expect((await dump(`${database.url}_missing`)).exitCode).not.toBe(0)
    expect(readdirSync(backups).filter((name) => name.endsWith('.dump'))).toHaveLength(14)
  },
)
