import { expect, test } from 'bun:test'
import { cpSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { makeFolder } from './support/folder.ts'
import { runProgram, startProgram } from './support/program.ts'
import { until } from './support/until.ts'

const ROOT = resolve(import.meta.dir, '..')

test('bun start installs, makes the database and a first token, and serves', async () => {
  using folder = makeFolder()
  const { child, stderr, ended } = startProgram([process.execPath, 'run', 'start'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PLANTSTORE_LISTEN: '127.0.0.1:0',
      PLANTSTORE_DATABASE: join(folder.path, 'plantstore.db'),
    },
  })
  await until('the server has said where it listens', (see) => see(stderr()).includes('/docs'))
  const firstLine = stderr().trimStart().split('\n')[0]
  const [url = ''] = /http:\/\/127\.0\.0\.1:\d+\/plants/.exec(stderr()) ?? []
  const headers = { authorization: `Bearer ${/plst_\w+/.exec(stderr())}`, 'content-type': 'application/json' }
  const created = await fetch(url, { method: 'POST', headers, body: '{"id":1,"name":"Monstera"}' })
  const listed = await fetch(url, { headers })
  const answers = [created.status, await listed.json()]
  child.kill('SIGTERM')

  expect({ firstLine, answers }).toEqual({
    firstLine: 'This token of user me is shown this once:',
    answers: [200, [{ name: 'Monstera' }]],
  })
  expect((await ended).exitCode).toBe(0)
})

test('bun start installs only what running needs, and says why it fails', async () => {
  using folder = makeFolder()
  for (const name of ['bun.lock', 'bunfig.toml', 'contrib/start.ts']) cpSync(join(ROOT, name), join(folder.path, name))
  const manifest = await Bun.file(join(ROOT, 'package.json')).json()
  writeFileSync(join(folder.path, 'package.json'), JSON.stringify({ ...manifest, engines: { bun: '0.0.1' } }))
  const { stderr, exitCode } = await runProgram([process.execPath, 'run', 'start'], {
    cwd: folder.path,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder.path,
      BUN_INSTALL_CACHE_DIR: join(folder.path, 'cache'),
      // Nothing listens at this address.
      BUN_CONFIG_REGISTRY: 'http://127.0.0.1:1/',
    },
  })

  expect(exitCode).toBe(1)
  expect(stderr).toStartWith(
    `This is Bun ${Bun.version}. Plant Store is tested with Bun 0.0.1 alone: if this fails, use that one.\nInstalling the locked packages.\n`,
  )
  expect(stderr).toContain(`error: ConnectionRefused downloading tarball elysia@${manifest.dependencies.elysia}`)
  expect(stderr).not.toContain('tarball @biomejs/biome')
})

test('bun start adds nothing to what a server says that refuses to start', async () => {
  using folder = makeFolder()
  const started = await runProgram([process.execPath, 'run', 'start', '--listen', '192.0.2.1:1'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: folder.path,
      PLANTSTORE_DATABASE: join(folder.path, 'plantstore.db'),
      PLANTSTORE_LOG_LEVEL: 'error',
    },
  })

  expect(started).toMatchObject({
    stdout: '',
    stderr:
      'plantstore: Cannot listen on http://192.0.2.1:1: this machine has no such address. Choose another with --listen.\n',
    exitCode: 1,
  })
})

test('the runtime has an exact version', async () => {
  const { engines, packageManager } = await Bun.file(join(ROOT, 'package.json')).json()

  expect({ bun: engines.bun, packageManager }).toEqual({ bun: Bun.version, packageManager: `bun@${Bun.version}` })
})
