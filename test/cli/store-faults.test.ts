import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { COMMAND } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { createTokenIn } from '../support/tokens.ts'

/** Root may write anywhere, unless it is without these capabilities. */
const RESTRICTED =
  process.getuid?.() === 0
    ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-dac_override,-dac_read_search']
    : []
const SMALL_DISK = ['unshare', '--mount', '--map-root-user', 'sh', '-c']

async function run(command: readonly string[]) {
  const child = Bun.spawn([...command], { env: { PATH: process.env.PATH ?? '' }, stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { stdout, stderr, exitCode }
}

/** Whether this machine can bring a fault about. Where CI runs it has to. */
const can = async (command: readonly string[]) => {
  if (process.env.CI === 'true') return true
  return Bun.which(command[0] ?? '') !== null && (await run(command)).exitCode === 0
}
const canRestrict = RESTRICTED.length === 0 || (await can([...RESTRICTED, 'true']))
const canMount = await can([...SMALL_DISK, `mount -t tmpfs tmpfs '${import.meta.dir}'`])

const create = (database: string) => ['token', 'create', '--user', 'me', '--database', database]
describe.skipIf(!canRestrict)(
  `without permission${canRestrict ? '' : ' (skipped: setpriv does not work here)'}`,
  () => {
    test('to write to the directory no database is made', async () => {
      using folder = makeFolder()
      const directory = join(folder.path, 'closed')
      mkdirSync(directory, 0o500)
      const answer = await run([...RESTRICTED, ...COMMAND, ...create(join(directory, 'plants.db'))])

      expect(answer).toMatchObject({ stdout: '', exitCode: 3 })
      expect(answer.stderr).toMatch(/^plantstore: [^\n]*is not writable[^\n]*\n$/)
    })

    test.each([0o400, 0o200, 0o000])('to read and write the file (mode %d) the database is refused', async (mode) => {
      using folder = makeFolder()
      const path = join(folder.path, 'plants.db')
      await createTokenIn(path)
      chmodSync(path, mode)
      const answer = await run([...RESTRICTED, ...COMMAND, ...create(path)])

      expect(answer).toMatchObject({ stdout: '', exitCode: 3 })
      expect(answer.stderr).toMatch(/^plantstore: [^\n]*cannot be read and written[^\n]*\n$/)
    })
  },
)

describe.skipIf(!canMount)(`without space${canMount ? '' : ' (skipped: nothing can be mounted here)'}`, () => {
  /** Runs commands one after the other on a small file system of their own, mounted at `$1`. */
  const onSmallDisk = (folder: string, kib: number, script: string) =>
    run([...SMALL_DISK, `mount -t tmpfs -o size=${kib}k tmpfs "$1" && shift && ${script}`, 'sh', folder, ...COMMAND])

  test('a new database is refused in one line with 3', async () => {
    using folder = makeFolder()
    const path = join(folder.path, 'plants.db')
    const answer = await onSmallDisk(folder.path, 16, `"$@" ${create(path).join(' ')}`)

    expect(answer).toMatchObject({ stdout: '', exitCode: 3 })
    expect(answer.stderr).toMatch(/^plantstore: [^\n]*space[^\n]*\n$/)
  })

  test.each([
    ['token create', 'token create --user me'],
    ['serve', 'serve --listen 127.0.0.1:0'],
  ])('%s on a database that was there is refused in one line with 3', async (_, command) => {
    using folder = makeFolder()
    const path = join(folder.path, 'plants.db')
    const fill = `cat /dev/zero >${folder.path}/filled 2>/dev/null`
    const script = `"$@" ${create(path).join(' ')} >/dev/null 2>&1; ${fill}; exec "$@" ${command} --database ${path}`
    const answer = await onSmallDisk(folder.path, 256, script)

    expect(answer).toMatchObject({ stdout: '', exitCode: 3 })
    expect(answer.stderr).toMatch(/^plantstore: [^\n]*space[^\n]*\n$/)
  })
})
