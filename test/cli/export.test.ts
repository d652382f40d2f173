import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { COMMAND, serve } from '../support/executable.ts'
import { fillDatabase } from './support/database.ts'

/** Two users have so many plants. That is more than a pipe takes, and more than one batch. */
const MANY_PLANTS = 25_000

/** Starts an export whose reader has read a small part, so that it waits. */
async function startExport(database: string) {
  const child = Bun.spawn([...COMMAND, 'export', '--database', database], { stdout: 'pipe', stderr: 'pipe' })
  const reader = child.stdout.getReader()
  const first = await reader.read()
  const readRest = async () => {
    const chunks = [first.value ?? new Uint8Array()]
    for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value)
    return Buffer.concat(chunks).toString()
  }
  return { child, readRest }
}

describe.concurrent('export', () => {
  test('prints the plants of the moment at which it began, while a server writes', async () => {
    using made = await fillDatabase(MANY_PLANTS)
    const { stdout: before } = await made.run('export')
    await using server = await serve(made.database)
    const { child, readRest } = await startExport(made.database)

    const { token } = made
    const deleted = await server.request('DELETE', `/plants/${MANY_PLANTS}`, { token })
    const created = await server.request('POST', '/plants', { token, body: { id: MANY_PLANTS + 1, name: 'Fern' } })
    const printed = await readRest()

    expect([deleted.status, created.status, await child.exited]).toEqual([204, 200, 0])
    expect(printed === before).toBe(true)
    expect((await made.run('export')).stdout === before).toBe(false)
  })

  test('prints all plants into a full pipe, also if another program has made the pipe one that does not wait', async () => {
    using made = await fillDatabase(MANY_PLANTS)
    const [piped, plain] = [join(made.folder, 'piped'), join(made.folder, 'plain')]
    const command = COMMAND.map((word) => `'${word}'`).join(' ')
    const script = `("$2" -e 'process.stdout.isTTY' && ${command} export --database "$1") | (sleep 0.5; cat) >"$3" && ${command} export --database "$1" >"$4"`

    const child = Bun.spawn(['sh', '-c', script, 'sh', made.database, process.execPath, piped, plain])

    expect(await child.exited).toBe(0)
    expect(readFileSync(piped, 'latin1') === readFileSync(plain, 'latin1')).toBe(true)
    expect(readFileSync(plain, 'latin1').split('\n')).toHaveLength(2 * MANY_PLANTS + 1)
  })

  test('ends at once by SIGTERM while its reader is slow, and says how to go on', async () => {
    using made = await fillDatabase(MANY_PLANTS)
    const { child } = await startExport(made.database)

    child.kill('SIGTERM')

    expect(await child.exited).toBe(143)
    expect(await child.stderr.text()).toMatch(
      new RegExp(
        `^Stopped by SIGTERM: \\d{1,5} of ${2 * MANY_PLANTS} plants are printed\\. The output is not whole: run the same command again\\.\n$`,
        'm',
      ),
    )
  })
})
