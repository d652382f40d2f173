import { describe, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { startProgram } from '../support/program.ts'

const title = `the executable alone${EXECUTABLE ? '' : ' (skipped: TEST_EXECUTABLE names none)'}`

/** Writes into a folder all that Bun would heed in a working directory. Whatever runs leaves the file `evil-was-here`. */
function writeHostileFiles(folder: string) {
  const variables = [
    'PLANTSTORE_LISTEN=127.0.0.1:1',
    'PLANTSTORE_DATABASE=evil.db',
    'PLANTSTORE_NO_DOCS=true',
    'PLANTSTORE_MAX_BODY=1B',
    'PLANTSTORE_EVIL=1',
    'NODE_ENV=development',
    'BUN_INSPECT=127.0.0.1:0?break=1',
    'BUN_OPTIONS=--preload=./evil.ts',
    'BUN_BE_BUN=1',
    'NODE_OPTIONS=--require=./evil.ts',
    '',
  ].join('\n')
  const names = ['.env', '.env.local', '.env.production', '.env.development']
  for (const name of names) writeFileSync(join(folder, name), variables)
  writeFileSync(
    join(folder, 'evil.ts'),
    "require('node:fs').writeFileSync('evil-was-here', '')\nthrow new Error('evil')\n",
  )
  const bunfig =
    'preload = ["./evil.ts"]\nlogLevel = "debug"\n[run]\nsilent = false\n[serve.static]\nplugins = ["./evil.ts"]\n'
  writeFileSync(join(folder, 'bunfig.toml'), bunfig)
  writeFileSync(join(folder, 'package.json'), '{"name":"evil","type":"commonjs","imports":{"#*":"./evil.ts"}}')
  writeFileSync(join(folder, 'tsconfig.json'), '{"compilerOptions":{"paths":{"*":["./evil.ts"]}}}')
}

/** Runs the executable with this environment and no other. */
function start(args: readonly string[], cwd: string, env: Record<string, string>) {
  const program = startProgram([EXECUTABLE || 'none', ...args], { cwd, env })
  return {
    ...program,
    [Symbol.asyncDispose]: async () => {
      program.child.kill('SIGKILL')
      await program.ended
    },
  }
}

/** The address of a server. Waits until the server says where it listens. */
async function addressOf(server: ReturnType<typeof start>): Promise<string> {
  for (;;) {
    const [, address] = /"address":"([^"]+)"/.exec(server.stdout()) ?? []
    if (address !== undefined) return address
    if (server.child.exitCode !== null) throw new Error(`the server has ended: ${server.stdout()}${server.stderr()}`)
    await Bun.sleep(5)
  }
}

describe.skipIf(!EXECUTABLE)(title, () => {
  test('serves with nothing else on the machine: an empty environment and no programs', async () => {
    using folder = makeFolder()
    const env = { PATH: '/nonexistent' }
    const database = join(folder.path, 'plantstore.db')
    await using server = start(['serve', '--listen', '127.0.0.1:0', '--database', database], folder.path, env)
    const address = await addressOf(server)
    await using creating = start(['token', 'create', '--user', 'me'], folder.path, env)
    const headers = {
      authorization: `Bearer ${(await creating.ended).stdout.trim()}`,
      'content-type': 'application/json',
    }
    const created = await fetch(`${address}/plants`, { method: 'POST', headers, body: '{"id":1,"name":"Fern"}' })
    const listed = await fetch(`${address}/plants`, { headers })
    const docs = await fetch(`${address}/docs`)
    server.child.kill('SIGTERM')

    expect([created.status, listed.status, docs.status]).toEqual([200, 200, 200])
    expect(await listed.json()).toEqual([{ name: 'Fern' }])
    expect(await server.child.exited).toBe(0)
    expect(readdirSync(folder.path)).toEqual(['plantstore.db'])
  })

  test('heeds no .env, bunfig.toml, package.json and tsconfig.json of the working directory', async () => {
    using folder = makeFolder()
    writeHostileFiles(folder.path)
    const before = readdirSync(folder.path).sort()
    await using server = start(['serve', '--listen', '127.0.0.1:0', '--log-level', 'debug'], folder.path, {})
    const address = await addressOf(server)
    const docs = await fetch(`${address}/docs`)
    const bug = await fetch(`${address}/nothing`)
    server.child.kill('SIGTERM')
    const { stdout, stderr, exitCode } = await server.ended

    expect(docs.status).toBe(200)
    expect(await bug.json()).toMatchObject({ error: 40401 })
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 })
    expect(stdout).toContain(`"database":"${join(folder.path, 'plantstore.db')}"`)
    expect(readdirSync(folder.path).sort()).toEqual([...before, 'plantstore.db'].sort())
  })

  test.each(['--version', 'openapi', 'token list', 'nothing'])(
    'runs %s the same beside hostile files',
    async (command) => {
      using clean = makeFolder()
      using hostile = makeFolder()
      writeHostileFiles(hostile.path)
      const outcomes = await Promise.all(
        [clean, hostile].map(async ({ path }) => {
          await using run = start(command.split(' '), path, {})
          const { stdout, stderr, exitCode } = await run.ended
          return { stdout, stderr: stderr.replaceAll(path, ''), exitCode }
        }),
      )

      expect(outcomes[1]).toEqual(outcomes[0])
      expect(readdirSync(hostile.path)).not.toContain('evil-was-here')
    },
  )
})
