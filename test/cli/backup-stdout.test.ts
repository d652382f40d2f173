import { describe, expect, test } from 'bun:test'
import { readdirSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { dump } from '../support/dump.ts'
import { COMMAND, runPlantstore } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { until } from '../support/until.ts'
import { fillDatabase } from './support/database.ts'

/** Two users have so many plants. That is more than a pipe takes. */
const PLANTS = 1500

/** Starts a shell script. In it "$@" is the executable. */
const start = (script: string, cwd: string) =>
  startProgram(['sh', '-c', script, 'sh', ...COMMAND], { cwd, env: { PATH: process.env.PATH ?? '' } })

const run = async (script: string, cwd: string) => {
  const { stderr, exitCode } = await start(script, cwd).ended
  return { stderr, exitCode }
}

describe.concurrent('backup -', () => {
  test('writes only a whole backup to stdout, and leaves no file', async () => {
    using made = await fillDatabase(PLANTS)
    using elsewhere = makeFolder()
    const [file, restored] = [join(elsewhere.path, 'plants.db'), join(elsewhere.path, 'restored.db')]
    const backup = await run(`exec "$@" backup - > ${file}`, made.folder)
    const files = readdirSync(made.folder)
    const { exitCode } = await runPlantstore(['restore', file, '--database', restored])

    expect(backup).toEqual({
      stderr: expect.stringMatching(
        new RegExp(`Backed up ${statSync(file).size} bytes: users 2, tokens 3, plants ${2 * PLANTS}\\.\n$`),
      ),
      exitCode: 0,
    })
    expect(exitCode).toBe(0)
    expect(files).toEqual(['plantstore.db'])
    expect(dump(restored)).toEqual(dump(made.database))
  })

  test('refuses a terminal', async () => {
    using made = await fillDatabase(PLANTS)

    expect(await runOnTerminal(['backup', '-', '--database', made.database])).toEqual({
      text: 'plantstore: A backup is not text: send stdout to a file or another program.\r\n',
      exitCode: 2,
    })
    expect(readdirSync(made.folder)).toEqual(['plantstore.db'])
  })

  test('ends silently with 141 when the reader closes the pipe', async () => {
    using made = await fillDatabase(PLANTS)
    const script = 'mkfifo pipe && exec 3<>pipe 4>pipe 3<&- && exec "$@" backup - >&4'

    expect(await run(script, made.folder)).toEqual({ stderr: '', exitCode: 141 })
    expect(readdirSync(made.folder).sort()).toEqual(['pipe', 'plantstore.db'])
  })

  test.skipIf(process.platform !== 'linux')('has no name, and ends by a signal while nobody reads', async () => {
    using made = await fillDatabase(PLANTS)
    const { child } = start('mkfifo pipe && exec 3<>pipe && exec "$@" backup - >&3', made.folder)
    await until('the backup has lost its name', () =>
      openFilesOf(child.pid).some((path) => /backup.*deleted/.test(path)),
    )
    const files = readdirSync(made.folder).sort()
    child.kill('SIGTERM')

    expect(await child.exited).toBe(143)
    expect(files).toEqual(['pipe', 'plantstore.db'])
  })
})

/** The paths of the files that a process has open (proc_pid_fd(5)). */
const openFilesOf = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)]
    } catch {
      return []
    }
  })
