import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { GUARDED, startCluster } from '../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../support/postgres-system.ts'
import { lacks } from '../support/requirement.ts'
import { makeGuarded } from './support/guarded-role.ts'
import { OUTPUTS } from './support/outputs.ts'
import { statusOf } from './support/service-client.ts'

const COMMANDS = [['check'], ['token', 'list'], ['user', 'list'], ['user', 'delete', 'nobody', '--yes']]

describe.skipIf(lacks(OWN_POSTGRES))('the password of a PostgreSQL database', () => {
  test('ends every command with exit code 3 and one line if it is wrong', async () => {
    using cluster = await startCluster()
    const url = (await makeGuarded(cluster)).replace(GUARDED.password, 'Wrong-99')

    for (const args of [['serve', '--listen', '127.0.0.1:0'], ['token', 'list'], ['check']]) {
      const { exitCode, stderr, stdout } = await runPlantstore([...args, '--database', url])
      expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' })
      expect(stderr).toMatch(/^plantstore: [^\n]*password authentication failed[^\n]*\n$/)
      expect(stderr).not.toContain('Wrong-99')
    }
  })

  test.each([
    { source: 'a file', names: ['answers', 'log', 'stderr', 'process'] },
    // The URL is an argument, which the system shows to other users.
    { source: 'the URL', names: ['answers', 'log', 'stderr'] },
  ])('shows nowhere if it comes from $source', async ({ source, names }) => {
    using cluster = await startCluster()
    using folder = makeFolder()
    const url = await makeGuarded(cluster)
    const file = join(folder.path, 'password')
    writeFileSync(file, `${GUARDED.password}\n`)
    const isFile = source === 'a file'
    const env: Record<string, string> = isFile ? { PLANTSTORE_DATABASE_PASSWORD_FILE: file } : {}
    const database = isFile ? url.replace(`:${GUARDED.password}`, '') : url

    await using server = await serve(database, ['--log-level', 'debug'], { env })
    const answers = await (await server.request('GET', '/readyz')).text()
    cluster.stop('immediate')
    await server.request('GET', '/plants', { token: 'plst_0' })
    await server.request('GET', '/readyz')
    cluster.start()
    while ((await statusOf(server, '/readyz')) !== 200) await Bun.sleep(20)
    const outputs = await Promise.all(COMMANDS.map((args) => runPlantstore([...args, '--database', database], { env })))
    const output = outputs.map(({ stdout, stderr }) => stdout + stderr).join()

    const used = { server, folder: cluster.data, database, answers }
    for (const name of names) {
      expect([name, (await OUTPUTS[name]?.(used))?.includes(GUARDED.password)]).toEqual([name, false])
    }
    expect(output).toContain('is whole')
    expect(output).not.toContain(GUARDED.password)
    expect(server.stdout()).toContain(`postgres://${GUARDED.user}@127.0.0.1:${cluster.port}/${GUARDED.user}`)
  })
})
